// The scripts of the admin UI. Each module is one idea; this one starts them and handles buttons with data-do.
import { startCharts } from "./charts.js";
import { closeDialog, openJump, openKeys, startDialogs } from "./dialogs.js";
import { startFailures } from "./failures.js";
import { startKeys } from "./keys.js";
import { pauseLive, startLive } from "./live.js";
import { startQueue } from "./queue.js";
import { startRows } from "./rows.js";
import { stopSearch } from "./search.js";
import { startSelection } from "./selection.js";
import { chooseTheme } from "./theme.js";
import { startTimes } from "./times.js";
import { showToast, startToasts } from "./toast.js";

const actions = {
  jump: openJump,
  keys: openKeys,
  close: closeDialog,
  theme: chooseTheme,
  "pause-live": pauseLive,
  copy: copyText,
  tab: chooseTab,
  "stop-search": stopSearch,
  reload: () => location.reload(),
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  const act = button && actions[button.dataset.do];
  if (act) act(button, event);
});

// Copies the text of data-copy-text, the answer of data-copy-url, or the text of the element that data-copy names.
async function copyText(button) {
  const source = button.dataset.copy ? document.querySelector(button.dataset.copy) : null;
  let text = button.dataset.copyText ?? source?.textContent ?? "";
  if (button.dataset.copyUrl) {
    const answer = await fetch(button.dataset.copyUrl, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer) return showToast("Not copied: the server does not answer");
    if (!answer.ok) return showToast("It is not there any more");
    text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
  }
  const copied = button.dataset.copied ?? "Copied";
  try {
    await navigator.clipboard.writeText(text);
    showToast(copied);
  } catch {
    showToast(copySelected(button, text) ? copied : "The browser does not let pages copy here");
  }
}

// How pages without https copy: through the selection of a field.
function copySelected(button, text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr-only";
  (button.closest("dialog") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  button.focus();
  return done;
}

// A tab shows the panel that it controls, and hides those of its neighbours.
function chooseTab(tab) {
  for (const each of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", String(chosen));
    const panel = document.getElementById(each.getAttribute("aria-controls"));
    if (panel) panel.hidden = !chosen;
  }
}

// A select of pages goes to the chosen one.
document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-goto]") && event.target.value.startsWith("/")) location.assign(event.target.value);
});

// A menu closes when something else is clicked.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.documentElement.classList.add("js");
startToasts();
startFailures();
startDialogs();
startTimes();
startCharts();
startRows();
startQueue();
startSelection();
startLive();
startKeys();
