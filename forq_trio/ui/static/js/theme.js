// Light or dark: at first the system's setting, then the reader's choice, which the server stores in a cookie.
export function chooseTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  htmx.ajax("POST", `${document.body.dataset.base}/theme`, { values: { theme: root.dataset.theme }, swap: "none" });
}
