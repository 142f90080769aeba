// A toast about a finished action stays for six seconds, or as long as the pointer or the focus is on it.
const KEY = "forq.toast";
let timer = 0;

export function startToasts() {
  document.addEventListener("forq:done", (event) => {
    const { toast, go, link, href } = event.detail;
    if (go) {
      if (toast) sessionStorage.setItem(KEY, JSON.stringify({ toast, link, href }));
      show(new URL(go, location.href));
    } else if (toast) showToast(toast, link, href);
  });
  const waiting = sessionStorage.getItem(KEY);
  if (waiting) {
    sessionStorage.removeItem(KEY);
    const { toast, link, href } = JSON.parse(waiting);
    showToast(toast, link, href);
  }
}

// The browser does not load a page again for another fragment of its URL.
function show(target) {
  if (target.pathname === location.pathname && target.search === location.search) {
    history.replaceState(null, "", target);
    location.reload();
  } else location.assign(target);
}

export function showToast(text, link, href) {
  const box = document.getElementById("toast");
  box.querySelector("span").textContent = text;
  const anchor = box.querySelector("a");
  anchor.hidden = !link;
  if (link) {
    anchor.textContent = link;
    anchor.href = href;
  }
  box.hidden = false;
  hideLater(box);
}

function hideLater(box) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (box.matches(":hover") || box.contains(document.activeElement)) hideLater(box);
    else box.hidden = true;
  }, 6000);
}
