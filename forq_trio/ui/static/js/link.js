// Logs in by a one-time link (one_time_link.py says how it works). A browser that draws a page ahead waits for its reader.
const logIn = () => {
  const token = location.hash.slice(1);
  const form = document.querySelector("form");
  if (!token || !form) return;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.link.value = token;
  form.submit();
};
if (document.prerendering) document.addEventListener("prerenderingchange", logIn, { once: true });
else logIn();
