// The scripts of the admin UI. Each module is one idea; this one starts them and handles buttons with data-do.
import { startCharts } from "./charts.js";
import { closeDialog, openJump, openKeys, startDialogs } from "./dialogs.js";
import { startKeys } from "./keys.js";
import { pauseLive, startLive } from "./live.js";
import { startRows } from "./rows.js";
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
  reload: () => location.reload(),
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  const act = button && actions[button.dataset.do];
  if (act) act(button, event);
});

// Copies the text of the element that data-copy names, or the text of data-copy-text.
async function copyText(button) {
  const text = button.dataset.copyText ?? document.querySelector(button.dataset.copy)?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    showToast("Copied");
  } catch {
    const range = document.createRange();
    const source = document.querySelector(button.dataset.copy);
    if (source) {
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    showToast("The browser does not let pages copy here: press Ctrl+C");
  }
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

// A menu closes when something else is clicked.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

startToasts();
startDialogs();
startTimes();
startCharts();
startRows();
startSelection();
startLive();
startKeys();
