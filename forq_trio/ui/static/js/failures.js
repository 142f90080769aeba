// A failed action shows its error beside its button or form, until the next try.
const PLACES = ".head, .selbar, .task, .tools, .tbl, .open, h2";

export function startFailures() {
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isAsked(event)) clear();
  });
  document.addEventListener("htmx:sendError", (event) => say(event, "the server does not answer."));
  document.addEventListener("htmx:timeout", (event) => say(event, "", "No answer for a minute: it may or may not have been done."));
  document.addEventListener("htmx:responseError", (event) => {
    const swap = event.detail.elt.closest("[hx-swap]")?.getAttribute("hx-swap");
    if (swap === "none") say(event, `the server answered ${event.detail.xhr.status}.`, "", event.detail.xhr.responseText);
  });
}

// Whether the reader has clicked or sent something; a page also loads parts by itself.
const isAsked = (event) => ["click", "submit"].includes(event.detail.requestConfig?.triggeringEvent?.type);

const clear = () => document.querySelectorAll("[data-failure]").forEach((each) => each.remove());

function say(event, why, text = `Not done: ${why}`, answer = "") {
  if (!isAsked(event)) return;
  clear();
  const template = document.createElement("template");
  template.innerHTML = answer;
  let callout = template.content.querySelector(".callout");
  if (!callout) {
    callout = document.createElement("div");
    callout.className = "callout bad";
    callout.setAttribute("role", "alert");
    callout.append(document.createElement("p"));
    callout.firstChild.textContent = text;
  }
  callout.dataset.failure = "";
  const asked = event.detail.elt;
  const dialog = asked.closest("dialog");
  if (dialog) dialog.append(callout);
  else (asked.closest(PLACES) ?? asked.closest("form") ?? asked).after(callout);
}
