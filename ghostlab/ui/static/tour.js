// The tour: a box that walks through the page, opens the tab in question and outlines what it speaks of.
// The page stays usable beside it: the box is no modal dialog, and it remembers nothing.
const start = element.querySelector(".gl-start");
const steps = JSON.parse(start.dataset.steps);
const still = matchMedia("(prefers-reduced-motion: reduce)");
let box = null, at = 0, visit = 0;

const inSight = (selector) => [...document.querySelectorAll(selector)].find((each) => {
  const {width, height, right} = each.getBoundingClientRect();
  return width && height && right > 0 && each.checkVisibility({visibilityProperty: true});
});
const tabButtons = () => document.querySelectorAll("#tabs [role=tab], #tabs .overflow-dropdown button");
const tabNamed = (title) => [...tabButtons()].find((each) => each.textContent.trim() === title);
const frame = () => new Promise((done) => setTimeout(done, 60));

const outline = (...elements) => {
  document.querySelectorAll("[data-toured]").forEach((each) => each.removeAttribute("data-toured"));
  elements.forEach((each) => each?.setAttribute("data-toured", ""));
};

// A tab's content comes after its first opening: look for a while, and go on without it.
const found = async (step, mine) => {
  for (let tries = 0; tries < 50 && mine === visit; tries += 1) {
    const target = step.at.map(inSight).find(Boolean);
    if (target) return target;
    await frame();
  }
  return null;
};

const part = (name) => box.querySelector(`.gl-tour-${name}`);

const show = async (index) => {
  at = index;
  visit += 1;
  const step = steps[at], mine = visit;
  part("count").textContent = `Step ${at + 1} of ${steps.length} · ${step.tab}`;
  part("title").textContent = step.title;
  part("words").textContent = step.words;
  part("says").textContent = "";
  part("back").disabled = at === 0;
  part("next").textContent = at === steps.length - 1 ? "Finish" : "Next";
  part("title").focus({preventScroll: true});
  tabNamed(step.tab)?.click();
  const target = await found(step, mine);
  if (mine !== visit || !box) return;
  outline(target, document.querySelector("#tabs [role=tab][aria-selected=true]"));
  target?.scrollIntoView({block: "start", behavior: still.matches ? "auto" : "smooth"});
  part("says").textContent = document.querySelector(step.says)?.textContent.trim() ?? "";
};

const close = () => {
  if (!box) return;
  visit += 1;
  outline();
  box.remove();
  box = null;
  document.removeEventListener("keydown", pressed);
  start.focus();
};
const next = () => (at === steps.length - 1 ? close() : show(at + 1));
const back = () => at > 0 && show(at - 1);

// Arrows belong to the box only while nothing else wants them: fields, tabs and figures keep theirs.
const pressed = (event) => {
  if (event.key === "Escape") return close();
  const free = box.contains(event.target) || event.target === document.body;
  const step = {ArrowRight: next, ArrowLeft: back}[event.key];
  if (!free || !step || event.altKey || event.ctrlKey || event.metaKey) return undefined;
  event.preventDefault();
  return step();
};

const open = () => {
  if (box) return;
  box = document.createElement("section");
  box.className = "gl-tour";
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-labelledby", "gl-tour-title");
  box.setAttribute("aria-describedby", "gl-tour-words gl-tour-says");
  box.innerHTML = `
    <div class="gl-tour-head"><span class="gl-tour-count"></span>
      <button type="button" class="gl-tour-close" aria-label="Close the tour">×</button></div>
    <h2 class="gl-tour-title" id="gl-tour-title" tabindex="-1"></h2>
    <p class="gl-tour-words" id="gl-tour-words"></p>
    <p class="gl-tour-says" id="gl-tour-says" aria-live="polite"></p>
    <div class="gl-tour-foot"><button type="button" class="gl-tour-back">Back</button>
      <button type="button" class="gl-tour-next">Next</button></div>`;
  (document.querySelector(".gradio-container .contain") ?? document.body).append(box);
  part("close").addEventListener("click", close);
  part("next").addEventListener("click", next);
  part("back").addEventListener("click", back);
  document.addEventListener("keydown", pressed);
  show(0);
};
start.addEventListener("click", open);
