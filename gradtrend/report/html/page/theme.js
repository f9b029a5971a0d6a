// Light, dark, or as the system has it. What is drawn on a canvas has to be drawn again.
G.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

G.redraw = function () {
  for (const group of G.groups.values()) group.redraw();
};

(function () {
  const root = document.documentElement;
  const button = document.querySelector("button.theme");
  const names = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" };
  // A file opened from a disk may not be allowed to keep anything: then it begins anew each time.
  const kept = { get: () => null, set: () => {} };
  try {
    window.localStorage.getItem("gradtrend-theme");
    kept.get = () => window.localStorage.getItem("gradtrend-theme");
    kept.set = (name) => window.localStorage.setItem("gradtrend-theme", name);
  } catch (refused) {
    button.title = "Not kept: this page may store nothing";
  }
  function show(name) {
    if (name === "auto") delete root.dataset.theme;
    else root.dataset.theme = name;
    button.textContent = names[name];
    G.redraw();
  }
  let theme = kept.get() in names ? kept.get() : "auto";
  show(theme);
  button.addEventListener("click", () => {
    const order = Object.keys(names);
    theme = order[(order.indexOf(theme) + 1) % order.length];
    kept.set(theme);
    show(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", G.redraw);
  // Paper is white.
  window.addEventListener("beforeprint", () => { root.dataset.theme = "light"; G.redraw(); });
  window.addEventListener("afterprint", () => show(theme));
})();
