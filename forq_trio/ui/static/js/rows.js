// Rows of lists: j and k move the focus, a row opens in place, one at a time, and opening never scrolls the page.
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

export function closeRow() {
  const open = document.querySelector("[data-opens][aria-expanded=true]");
  if (!open) return false;
  shut(open);
  open.focus();
  return true;
}
