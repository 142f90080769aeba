// Lists of a queue: which of the rows are gone, how many messages are new, and the forms of its dialogs.
import { isPaused } from "./live.js";
import { strike } from "./rows.js";

const PRESENT_MS = 5000;
const PRESENT_MAX = 200;
let timer = 0;

export function startQueue() {
  document.addEventListener("forq:live", () => {
    countNew();
    // Live updates may have added buttons that htmx does not know yet.
    for (const cell of document.querySelectorAll("[data-live]:has([hx-get], [hx-post])")) htmx.process(cell);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-json]")) hintJson(event.target);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[name=back_off]")) showBackOff();
  });
  document.addEventListener("htmx:afterSwap", () => {
    showBackOff();
    for (const field of document.querySelectorAll("[data-json]")) hintJson(field);
  });
  document.addEventListener("visibilitychange", later);
  showBackOff();
  showTab();
  later();
}

// The tab that is open is in view on a narrow screen.
function showTab() {
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;
}

function later() {
  clearTimeout(timer);
  if (document.querySelector("[data-present]") && !document.hidden) timer = setTimeout(askPresent, PRESENT_MS);
}

// Rows in the window and near it, at most PRESENT_MAX of them.
function rowsToAsk() {
  const near = innerHeight;
  return [...document.querySelectorAll("[data-present] > [data-seq]:not(.gone)")]
    .filter((row) => {
      const box = row.getBoundingClientRect();
      return box.bottom > -near && box.top < 2 * near;
    })
    .slice(0, PRESENT_MAX);
}

async function askPresent() {
  const list = document.querySelector("[data-present]");
  const rows = list && !isPaused() ? rowsToAsk() : [];
  if (rows.length) {
    try {
      const url = `${list.dataset.present}?seq=${rows.map((row) => row.dataset.seq).join(",")}`;
      const answer = await fetch(url, { headers: { "HX-Request": "true" } });
      if (answer.ok) strikeOthers(rows, new Set((await answer.text()).split(",")), list.dataset.gone);
    } catch {
      // The bar says when the server does not answer; it is asked again.
    }
  }
  later();
}

function strikeOthers(rows, present, word) {
  for (const row of rows) {
    if (!present.has(row.dataset.seq) && !row.classList.contains("gone")) strike(row, word);
  }
}

function countNew() {
  const button = document.querySelector("[data-sent-then]");
  const total = document.querySelector("[data-sent]");
  if (!button || !total) return;
  const count = Number(total.textContent) - Number(button.dataset.sentThen);
  const text = count > 0 ? `${count.toLocaleString("en-US")} new` : "";
  const place = button.querySelector("[data-new]");
  if (place.textContent !== text) place.textContent = text;
}

// Content that looks like JSON is parsed to say whether it is valid; it is sent unchanged in any case.
function hintJson(field) {
  const hint = field.closest(".fld").querySelector("[data-json-hint]");
  hint.dataset.text ??= hint.textContent;
  let text = hint.dataset.text;
  if (/^\s*[[{]/.test(field.value)) {
    try {
      JSON.parse(field.value);
      text = "It is valid JSON.";
    } catch {
      text = "It is no valid JSON; it is sent as it is.";
    }
  }
  if (hint.textContent !== text) hint.textContent = text;
}

// The fields of the chosen back-off.
function showBackOff() {
  const chosen = document.querySelector("[name=back_off]")?.value;
  for (const part of document.querySelectorAll("[data-when]")) part.hidden = part.dataset.when !== chosen;
}
