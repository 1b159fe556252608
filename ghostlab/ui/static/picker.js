// The block picker. gr.HTML runs this once, with `element`, `props` (value, outline, note, scores, by_hand),
// `trigger` and `watch`. Nothing here asks the server: the value is the blocks to drop as text, "20:25, 27".
const COLUMNS = 10;
const PART = /^(\d{1,6})(?:\s*:\s*(\d{1,6}))?$/;
const find = (name) => element.querySelector(`.gl-${name}`);
const strip = find("strip");
let tiles = [];
let drag = null; // {from, to, drop, before} while the pointer is down

const depth = () => props.outline?.layers ?? 0;
const run = (start, stop) => Array.from({ length: stop - start }, (_, i) => start + i);

/** The set of blocks that a text names; throws a sentence, as ghostlab.cut does, when it names none. */
function parse(text) {
  const dropped = new Set();
  for (const part of text.split(",").map((p) => p.trim()).filter(Boolean)) {
    const match = PART.exec(part);
    const start = Number(match?.[1]);
    const stop = match?.[2] === undefined ? start + 1 : Number(match[2]);
    if (!match || start >= stop) throw `${part} is not a block: write start:stop with start < stop.`;
    if (stop > depth()) throw `${part} lies outside the model: its layers are 0 to ${depth() - 1}.`;
    for (const block of run(start, stop)) {
      if (dropped.has(block)) throw `Layer ${block} is named twice.`;
      dropped.add(block);
    }
  }
  return dropped;
}

/** Maximal runs [start, stop) of the blocks that are in the set, or of those that are not. */
function runs(dropped, wanted) {
  const found = [];
  for (const block of run(0, depth())) {
    if (dropped.has(block) !== wanted) continue;
    if (found.length && found.at(-1)[1] === block) found.at(-1)[1] += 1;
    else found.push([block, block + 1]);
  }
  return found;
}

const written = (dropped) =>
  runs(dropped, true).map(([s, e]) => (e === s + 1 ? `${s}` : `${s}:${e}`)).join(", ");
const spoken = (dropped) =>
  runs(dropped, true).map(([s, e]) => (e === s + 1 ? `${s}` : `${s}\u2013${e - 1}`)).join(", ");

const UNITS = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];
const short = (value) => {
  const [size, unit] = UNITS.find(([each]) => value >= 0.9995 * each) ?? [1, " "];
  return (value / size).toPrecision(3) + unit;
};

/** What is gone: label -> words. Speed counts multiplications per token in blocks and output matrix. */
function facts(dropped) {
  const { blocks, head, total } = props.outline;
  const keep = runs(dropped, false).map(([s, e]) => `[${s}, ${e}]`).join(" ");
  if (!blocks.length) {
    return { blocks: `${dropped.size} of ${depth()} (${share(dropped.size / depth())})`, keep };
  }
  const all = blocks.reduce((a, b) => a + b, 0);
  const gone = [...dropped].reduce((sum, block) => sum + blocks[block], 0);
  const speed = (all + head) / (all - gone + head);
  return {
    parameters: `\u2212${short(gone)} of ${short(total)} (${share(gone / total)})`,
    memory: `\u2212${short(gone * 2)}B at 16 bits, \u2212${short(gone * 4)}B at 32`,
    speed: `\u00d7${speed.toFixed(2)}`,
    keep,
  };
}
const share = (value) => `${(value * 100).toFixed(1)}\u202f%`;

/** What is dropped according to the text; in the hands of a criterion, what its scores lead to. */
function asked() {
  const text = props.by_hand ? props.value : (props.scores?.chosen ?? "");
  try {
    return [parse(text || ""), ""];
  } catch (sentence) {
    return [new Set(), String(sentence)];
  }
}

function summary(dropped, problem) {
  if (problem) return problem;
  if (dropped.size === depth()) return "This drops every layer: leave at least one layer.";
  const said = dropped.size ? `Drops ${spoken(dropped)} (${dropped.size} of ${depth()}).` : "";
  if (props.by_hand) return said || "Nothing is dropped: click or drag over layers.";
  const chosen = dropped.size
    ? `The criterion chooses ${spoken(dropped)} (${dropped.size} of ${depth()}).`
    : "The criterion decides; Score blocks shows how.";
  return `${chosen} Click a layer to name blocks yourself.`;
}

function label(block, gone) {
  const { blocks, attention, layer_types } = props.outline;
  const type = layer_types[block] ? `${layer_types[block].replace("_", " ")}, ` : "";
  const size = blocks.length
    ? `; attention ${short(attention[block])}, MLP ${short(blocks[block] - attention[block])} parameters`
    : "";
  const score = props.scores?.words[block] ? `; ${props.scores.words[block]}` : "";
  return `Layer ${block}, ${type}${gone ? "dropped" : "kept"}${size}${score}`;
}

/** Show a set of dropped blocks; `quiet` while dragging, so that a screen reader hears only the end. */
function paint(dropped, problem = "", quiet = false) {
  tiles.forEach((tile, block) => {
    const gone = dropped.has(block);
    tile.setAttribute("aria-pressed", String(gone));
    tile.setAttribute("aria-label", label(block, gone));
    tile.title = tile.getAttribute("aria-label");
  });
  const said = find("said");
  said.classList.toggle("gl-wrong", depth() > 0 && (problem !== "" || dropped.size === depth()));
  if (!quiet) said.textContent = depth() ? summary(dropped, problem) : props.note;
  const known = dropped.size && dropped.size < depth() ? facts(dropped) : {};
  for (const row of element.querySelectorAll("[data-fact]")) {
    row.hidden = !known[row.dataset.fact];
    row.querySelector("dd > b").textContent = known[row.dataset.fact] ?? "";
  }
}

function tile(block) {
  const { blocks, attention, layer_types } = props.outline;
  const made = document.createElement("button");
  made.type = "button";
  made.className = "gl-block";
  made.dataset.block = block;
  made.tabIndex = block ? -1 : 0;
  if (layer_types[block] === "sliding_attention") made.classList.add("gl-sliding");
  const part = blocks.length ? attention[block] / blocks[block] : 0.3;
  const score = props.scores?.heights[block];
  const bar = props.scores ? `<u><s style="width:${(score ?? 0) * 100}%"></s></u>` : "";
  const parts = [part, 1 - part].map((grow) => `<i style="flex-grow:${grow}"></i>`).join("");
  made.innerHTML = `<span>${block}</span>${parts}${bar}`;
  return made;
}

/** Draw the model anew, then what is dropped of it. */
function draw() {
  const focused = tiles.indexOf(document.activeElement);
  drag = null;
  tiles = run(0, depth()).map(tile);
  strip.replaceChildren(...tiles);
  strip.setAttribute("aria-label", `Layers of ${props.outline?.name ?? "the model"}`);
  find("picker").classList.toggle("gl-undecided", !props.by_hand);
  find("colours").hidden = !depth();
  find("types").hidden = !props.outline?.layer_types.length;
  find("scored").hidden = !props.scores;
  find("scored").lastChild.textContent = props.scores?.legend ?? "";
  paint(...asked());
  if (focused >= 0) focus(focused);
}

/** Take a set over into the text field: the one event of a gesture. */
function commit(dropped) {
  props.value = written(dropped);
  trigger("input");
  if (props.by_hand) paint(dropped);
}

function ranged({ from, to, drop, before }) {
  const after = new Set(before);
  for (const block of run(Math.min(from, to), Math.max(from, to) + 1)) after[drop ? "add" : "delete"](block);
  return after;
}

function toggle(block) {
  const [before] = asked();
  commit(ranged({ from: block, to: block, drop: !before.has(block), before }));
}

function focus(block) {
  const next = tiles[Math.min(Math.max(block, 0), tiles.length - 1)];
  tiles.forEach((each) => (each.tabIndex = each === next ? 0 : -1));
  next?.focus();
}

const at = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest(".gl-block");

strip.addEventListener("pointerdown", (event) => {
  const pressed = event.target.closest(".gl-block");
  if (!pressed || event.button) return;
  const block = tiles.indexOf(pressed);
  const [before] = asked();
  drag = { from: block, to: block, drop: !before.has(block), before };
  strip.setPointerCapture(event.pointerId);
  focus(block);
  paint(ranged(drag), "", true);
});
strip.addEventListener("pointermove", (event) => {
  const over = drag ? tiles.indexOf(at(event)) : -1;
  if (over < 0 || over === drag.to) return;
  drag.to = over;
  paint(ranged(drag), "", true);
});
strip.addEventListener("pointerup", () => {
  if (drag) commit(ranged(drag));
  drag = null;
});
const giveUp = () => {
  if (drag) paint(drag.before);
  drag = null;
};
strip.addEventListener("pointercancel", giveUp); // a finger that scrolls
strip.addEventListener("click", (event) => {
  const pressed = event.target.closest(".gl-block");
  if (pressed && event.detail === 0) toggle(tiles.indexOf(pressed)); // space, enter, assistive technology
});
strip.addEventListener("keydown", (event) => {
  const here = tiles.indexOf(document.activeElement);
  const rows = { ArrowDown: COLUMNS, ArrowUp: -COLUMNS };
  const steps = { ArrowRight: 1, ArrowLeft: -1, ...rows, Home: -here, End: tiles.length };
  if (event.key === "Escape") giveUp();
  if (here < 0 || !(event.key in steps)) return;
  event.preventDefault();
  focus(here + steps[event.key]);
});

watch(["outline", "note", "scores", "by_hand"], draw);
watch("value", () => paint(...asked()));
draw();
