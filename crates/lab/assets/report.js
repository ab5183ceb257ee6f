const root = document.documentElement;
document.querySelector("button").addEventListener("click", () => {
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});
for (const entry of document.querySelectorAll(".legend [data-model]")) {
  entry.addEventListener("mouseenter", () => { document.body.dataset.only = entry.dataset.model; });
  entry.addEventListener("mouseleave", () => { delete document.body.dataset.only; });
}
