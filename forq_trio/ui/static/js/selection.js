// Selected rows of a list with checkboxes: [data-selection] is the form, [data-select] its boxes, [data-select-all] all
// that are shown. The bar [data-selection-bar] shows how many; its buttons with data-one need exactly one.
let last = null;

export function startSelection() {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
      everything(false);
    }
    if (event.target.matches("[data-select], [data-select-all]")) show();
  });
  document.addEventListener("click", (event) => {
    const box = event.target.closest("[data-select]");
    if (box && event.shiftKey && last) range(last, box);
    if (box) last = box;
    if (event.target.closest("[data-select-matching]")) everything(true);
    if (event.target.closest("[data-select-none]")) clearSelection();
  });
  document.addEventListener("htmx:afterSettle", () => document.querySelector("[data-selection]") && show());
}

const boxes = () => [...document.querySelectorAll("[data-select]")];

function range(from, to) {
  const all = boxes();
  const [first, end] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  for (const box of all.slice(first, end + 1)) box.checked = to.checked;
  show();
}

// all: all rows that match, not only those on the page.
function everything(all) {
  const field = document.querySelector("[data-selection] [name=all]");
  if (field) field.value = all ? "1" : "";
  if (all) for (const box of boxes()) box.checked = true;
  show();
}

export function toggleRow(upToHere) {
  const box = document.activeElement?.closest("[data-row]")?.querySelector("[data-select]");
  if (!box) return false;
  box.checked = upToHere || !box.checked;
  if (upToHere && last) range(last, box);
  last = box;
  show();
  return true;
}

export function clearSelection() {
  for (const box of boxes()) box.checked = false;
  everything(false);
  const all = document.querySelector("[data-select-all]");
  if (all) all.checked = false;
}

// A row that can be selected no more.
export function deselect(row) {
  const box = row.querySelector("[data-select]");
  if (!box) return;
  box.checked = false;
  box.disabled = true;
  box.removeAttribute("data-select");
  row.classList.remove("on");
  show();
}

function show() {
  const chosen = boxes().filter((box) => box.checked);
  for (const box of boxes()) box.closest("[data-row]")?.classList.toggle("on", box.checked);
  const bar = document.querySelector("[data-selection-bar]");
  if (!bar) return;
  const all = document.querySelector("[data-selection] [name=all]")?.value === "1";
  if (all && chosen.length < boxes().length) return everything(false);
  bar.classList.toggle("is-empty", chosen.length === 0);
  const count = bar.querySelector("[data-selected]");
  const text = all ? bar.querySelector("[data-all-text]")?.dataset.allText : `${chosen.length.toLocaleString("en-US")} selected`;
  if (count && count.textContent !== text) count.textContent = text;
  for (const button of bar.querySelectorAll("[data-one]")) button.disabled = all || chosen.length !== 1;
  // For a few rows the delete button itself asks; for more it opens a dialog.
  for (const button of bar.querySelectorAll("[data-few]")) {
    button.hidden = all || chosen.length > Number(button.dataset.few);
    button.dataset.ask = chosen.length === 1 ? "Delete 1 message?" : `Delete ${chosen.length} messages?`;
  }
  for (const button of bar.querySelectorAll("[data-many]")) button.hidden = !all && chosen.length <= Number(button.dataset.many);
  for (const button of bar.querySelectorAll("button")) {
    if (!button.hasAttribute("data-one")) button.disabled = chosen.length === 0;
  }
}
