// What the page's events call by name (js="ghostlab.saveFile"), and what must be there before the first figure.
window.ghostlab = {
  /** Saves the file that a hidden download button holds: gradio's own would need a second click. */
  saveFile(file) {
    if (!file) return;
    const link = Object.assign(document.createElement("a"), {href: file.url, download: file.orig_name ?? ""});
    document.body.append(link);
    link.click();
    link.remove();
  },
  /** On a phone the sidebar lies over the page. */
  foldSidebar() {
    if (innerWidth < 768) document.querySelector("#sidebar.open .toggle-button")?.click();
  },
  /** Puts a query into the address; of what it held before, the theme and the other jobs stay. */
  showAddress(query) {
    if (!query) return;
    const url = new URL(location.href);
    const next = new URLSearchParams(query);
    const kept = ["__theme", "run", "atlas", "scores"];
    if (next.has("run")) kept.pop(); // a run says by itself how its blocks were scored
    for (const name of kept)
      if (url.searchParams.has(name) && !next.has(name)) next.set(name, url.searchParams.get(name));
    url.search = next;
    history.replaceState(null, "", url);
  },
};

// Gradio sets window.Plotly when the first figure comes into sight; nothing else tells of it. On a page with a base,
// Plotly names clip paths by the page's whole address, which changes with every run: curves would vanish. Gradio's
// base is where the page lies anyway.
let plotly;
function withoutBase() {
  const base = document.querySelector("base");
  if (base && base.href === new URL("./", location.href).href) base.remove();
}
Object.defineProperty(window, "Plotly", {
  configurable: true,
  get: () => plotly,
  set: (given) => { plotly = given; withoutBase(); ghostlabModebar(given); },
});
