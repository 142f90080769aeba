// Rows of lists: j and k move the focus, a row opens in place, one at a time, and opening never scrolls the page. A row
// whose message has gone stays, struck out and without its buttons.
import { deselect } from "./selection.js";

const focusable = (row) => row.querySelector("a, button");

export function startRows() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-opens]");
    if (button) toggle(button, event);
  }, true);
  // A row is one large target: a click beside its links follows the first of them.
  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-row]");
    if (row && !event.target.closest("a, button, input, label, [data-opens]") && !getSelection().toString()) focusable(row)?.click();
  });
  document.addEventListener("forq:done", (event) => {
    const { gone, go } = event.detail;
    const row = gone && !go && document.querySelector(`[data-present] > [data-seq="${gone.sequence}"]`);
    if (!row) return;
    strike(row, gone.word);
    htmx.trigger(document.body, "forq:gone"); // parts of the page that count messages are loaded again
  });
}

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
const current = () => document.activeElement?.closest("[data-row]");

export function moveRow(step, onlyInside = false) {
  const all = rows();
  const place = all.indexOf(current());
  if (onlyInside && place < 0) return false;
  const next = place < 0 ? all[step > 0 ? 0 : all.length - 1] : all[place + step];
  if (!next) return false;
  focusable(next)?.focus();
  return true;
}

export function openRow() {
  focusable(current() ?? document.body)?.click();
}

export function openRowPage() {
  const page = current()?.dataset.page;
  if (!page) return false;
  location.assign(page);
  return true;
}

// Opens the place below a row (data-opens names it), and closes the one that was open.
function toggle(button, event) {
  const place = document.getElementById(button.dataset.opens);
  if (!place) return;
  const opens = button.getAttribute("aria-expanded") !== "true";
  const top = button.getBoundingClientRect().top;
  for (const other of document.querySelectorAll("[data-opens][aria-expanded=true]")) shut(other);
  if (opens) {
    button.setAttribute("aria-expanded", "true");
    place.hidden = false;
  } else event.stopPropagation(); // closing loads nothing
  scrollBy(0, button.getBoundingClientRect().top - top);
}

function shut(button) {
  button.setAttribute("aria-expanded", "false");
  const place = document.getElementById(button.dataset.opens);
  if (place) place.hidden = true;
}

// word: what has become of the message.
export function strike(row, word) {
  row.classList.add("gone");
  const last = row.querySelector("[data-last]");
  last.className = "lsx num gone-word";
  for (const name of ["data-until", "data-lease", "data-due", "title"]) last.removeAttribute(name);
  last.textContent = word;
  deselect(row);
  const button = row.querySelector("[data-opens]");
  const place = document.getElementById(button.dataset.opens);
  const was = button.getAttribute("aria-expanded") === "true";
  shut(button);
  place?.replaceChildren(); // what is opened from now on says that the message is not there any more
  if (was && document.activeElement === document.body) button.focus();
}

export function closeRow() {
  const open = document.querySelector("[data-opens][aria-expanded=true]");
  if (!open) return false;
  shut(open);
  open.focus();
  return true;
}
