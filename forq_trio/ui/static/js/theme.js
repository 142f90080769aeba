// Light or dark: at first what the system has, then what was chosen, kept in a cookie by the server.
export function chooseTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  htmx.ajax("POST", `${document.body.dataset.base}/theme`, { values: { theme: root.dataset.theme }, swap: "none" });
}
