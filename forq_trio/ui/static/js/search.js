// A search that goes on step by step: #bound asks for the next step itself. Stopped, it says how far it came.
export function stopSearch() {
  const bound = document.querySelector("#bound.is-searching:not(.is-stopped)");
  if (!bound) return false;
  htmx.trigger(bound, "htmx:abort");
  bound.classList.add("is-stopped");
  bound.querySelector("[name=searching]")?.remove();
  return true;
}
