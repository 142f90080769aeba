// Native dialogs, which keep the focus and return it. Loading something into #dialog opens it.
const DOUBLE_CLICK_MS = 600;
let opener = null;

export function startDialogs() {
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "dialog") {
      forgetWarning(event.target);
      event.target.toggleAttribute("data-refused", event.detail.xhr?.status >= 400);
      open(event.target);
    }
    // After a refused form, focus its first invalid field.
    if (event.detail.xhr?.status >= 400) event.target.querySelector?.("[aria-invalid=true]")?.focus();
  });
  document.addEventListener("cancel", (event) => {
    if (event.target.matches("dialog") && !mayLeave(event.target)) event.preventDefault();
  }, true);
  document.addEventListener("forq:done", () => closeDialog());
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-must-equal]")) confirmTyped(event.target);
    const dialog = event.target.closest("dialog");
    if (dialog) forgetWarning(dialog);
  });
  document.addEventListener("click", (event) => {
    const dialog = event.target.closest("dialog");
    if (dialog && event.target === dialog) outside(dialog, event);
  });
  document.addEventListener("click", askFirst, true);
}

function open(dialog) {
  if (dialog.open) return;
  const menu = document.activeElement.closest("details.menu");
  opener = menu?.querySelector("summary") ?? document.activeElement;
  if (menu) menu.open = false;
  dialog.showModal();
  const first = dialog.querySelector("[autofocus]") ?? dialog.querySelector("input:not([type=hidden]), textarea, select, button");
  first?.focus();
  dialog.addEventListener("close", () => giveBack(dialog), { once: true });
}

// The browser's close event comes some time later: if the reader has focused something else by then, it stays so.
function giveBack(dialog) {
  const now = document.activeElement;
  if (opener?.isConnected && (now === document.body || dialog.contains(now))) opener.focus();
}

export function closeDialog() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

// The first Escape warns that typed text would be lost, the second one closes.
export function leaveDialog() {
  const dialog = document.querySelector("dialog[open]");
  if (dialog && mayLeave(dialog)) dialog.close();
}

// Whether nothing would be lost, or the reader was warned.
function mayLeave(dialog) {
  if (dialog.id !== "dialog" || !isTyped(dialog) || dialog.querySelector("[data-warning]")) return true;
  const line = document.createElement("p");
  line.className = "note";
  line.dataset.warning = "";
  line.setAttribute("role", "alert");
  line.textContent = "Press Esc again to throw away what you typed";
  const buttons = dialog.querySelector("form > .acts:last-child");
  if (buttons) buttons.before(line);
  else dialog.append(line);
  return false;
}

function forgetWarning(dialog) {
  dialog.querySelector("[data-warning]")?.remove();
}

// A refused form comes back with the typed texts as its values.
const isTyped = (dialog) =>
  dialog.hasAttribute("data-refused") ||
  [...dialog.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);

export function openJump() {
  open(document.getElementById("jump"));
}

export function openKeys() {
  open(document.getElementById("keys"));
}

// A click beside the dialog closes it, unless something was typed into it.
function outside(dialog, event) {
  const box = dialog.getBoundingClientRect();
  const inside =
    event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
  if (!inside && !isTyped(dialog)) dialog.close();
}

// The button of an action that cannot be undone is disabled until the name is typed.
function confirmTyped(field) {
  const button = field.form.querySelector("[data-confirm]");
  if (button) button.disabled = field.value !== field.dataset.mustEqual;
}

// A button with data-ask turns into a question, and acts at a second click within four seconds, unless that comes so
// soon that it belongs to a double click.
function askFirst(event) {
  const button = event.target.closest("[data-ask]");
  if (!button || event.timeStamp - Number(button.dataset.asked) >= DOUBLE_CLICK_MS) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (button.dataset.asked !== undefined) return;
  const text = button.textContent;
  button.dataset.asked = String(event.timeStamp);
  button.textContent = button.dataset.ask;
  setTimeout(() => {
    if (!button.isConnected || button.dataset.asked === undefined) return;
    delete button.dataset.asked;
    button.textContent = text;
  }, 4000);
}
