// Dialogs: native ones, that keep the focus and give it back; what is loaded into #dialog opens it.
let opener = null;

export function startDialogs() {
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "dialog") open(event.target);
  });
  document.addEventListener("forq:done", () => closeDialog());
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-must-equal]")) confirmTyped(event.target);
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
  dialog.addEventListener("close", () => opener?.isConnected && opener.focus(), { once: true });
}

export function closeDialog() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

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
  const typed = [...dialog.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
  if (!inside && !typed) dialog.close();
}

// The button of what cannot be undone stays off until the name was typed.
function confirmTyped(field) {
  const button = field.form.querySelector("[data-confirm]");
  if (button) button.disabled = field.value !== field.dataset.mustEqual;
}

// A button with data-ask asks in its own place, and does it at the second click within four seconds.
function askFirst(event) {
  const button = event.target.closest("[data-ask]");
  if (!button || button.dataset.asked !== undefined) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const text = button.textContent;
  button.dataset.asked = "";
  button.textContent = button.dataset.ask;
  setTimeout(() => {
    if (!button.isConnected || button.dataset.asked === undefined) return;
    delete button.dataset.asked;
    button.textContent = text;
  }, 4000);
}
