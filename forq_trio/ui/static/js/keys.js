// Single keys: they move and open, and change nothing on the server. Off while a field has the focus.
import { leaveDialog, openJump, openKeys } from "./dialogs.js";
import { pauseLive } from "./live.js";
import { closeRow, moveRow, openRow, openRowPage } from "./rows.js";
import { stopSearch } from "./search.js";
import { clearSelection, toggleRow } from "./selection.js";

const OFF_KEY = "forq.keys.off";
const places = { q: "/", d: "/dead", c: "/schedules", w: "/workers", s: "/system" };
let goes = 0;

const keys = {
  "/": openJump,
  "?": openKeys,
  f: () => document.querySelector("[data-filter]")?.focus(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  ArrowDown: () => moveRow(1, true),
  ArrowUp: () => moveRow(-1, true),
  o: openRowPage,
  r: () => document.querySelector("[data-refresh]")?.click(),
  p: pauseLive,
  e: () => document.querySelector("[data-edit]:not([disabled])")?.click(),
  x: () => toggleRow(false),
  X: () => toggleRow(true),
};

export function startKeys() {
  const box = document.getElementById("keys-off");
  if (box) {
    box.checked = localStorage.getItem(OFF_KEY) === "yes";
    box.addEventListener("change", () => localStorage.setItem(OFF_KEY, box.checked ? "yes" : "no"));
  }
  document.addEventListener("keydown", press);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape") return escape(event);
  const field = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (field || document.querySelector("dialog[open]") || localStorage.getItem(OFF_KEY) === "yes") return;
  if (event.key === "Enter") return event.target.matches("[data-row]") && openRow();
  if (goes && Date.now() - goes < 1500 && places[event.key]) {
    event.preventDefault();
    return location.assign(document.body.dataset.base + places[event.key]);
  }
  goes = event.key === "g" ? Date.now() : 0;
  const act = keys[event.key];
  if (!act) return;
  if (act() !== false) event.preventDefault();
}

// Ends one thing: a dialog, else the typing in a field, else the open row, else the running search, else the selection.
// Typed text stays, although browsers would empty a search field.
function escape(event) {
  if (document.querySelector("dialog[open]")) {
    event.preventDefault();
    return leaveDialog();
  }
  const field = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (field) {
    event.preventDefault();
    return field.blur();
  }
  if (!closeRow() && !stopSearch()) clearSelection();
}
