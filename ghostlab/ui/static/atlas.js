// The cell under the pointer is told while it moves, pressed or not, and taken by a click. gr.Plot has no events, and
// plotly hears of no cell while a button is down. All cells are equally large.
const box = element.closest("#atlas");
const cellAt = (chart, {clientX, clientY}) => {
  const frame = chart.querySelector(".nsewdrag").getBoundingClientRect();
  const {customdata, text} = chart.data.find((trace) => trace.customdata) ?? {};
  const across = (clientX - frame.left) / frame.width, up = (frame.bottom - clientY) / frame.height;
  if (!customdata || Math.min(across, up) < 0 || Math.max(across, up) >= 1) return {};
  const row = Math.floor(up * customdata.length), column = Math.floor(across * customdata[0].length);
  return {block: customdata[row][column], words: text[row][column]};
};
const tell = ({words}) => {
  const lines = words?.split("<br>").map((line) => {
    const part = Object.assign(document.createElement("p"), {textContent: line});
    if (!line.includes(": ")) part.className = "gl-head";
    return part;
  });
  if (lines) box.querySelector(".gl-told").replaceChildren(...lines);
};
const chartAt = (event) => event.target.closest?.("#atlas-map .js-plotly-plot");
let pressed = null;
document.addEventListener("pointermove", (event) => {
  const chart = pressed?.chart ?? chartAt(event);
  if (chart?.data) tell(cellAt(chart, event));
});
document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest?.("#atlas-map .nsewdrag") && chartAt(event);
  if (chart) pressed = {chart, x: event.clientX, y: event.clientY};
});
document.addEventListener("pointercancel", () => { pressed = null; });
document.addEventListener("pointerup", (event) => {
  const {chart, x, y} = pressed ?? {};
  pressed = null;
  if (!chart || Math.hypot(event.clientX - x, event.clientY - y) > 5) return;
  const cell = cellAt(chart, event);
  tell(cell);
  if (cell.block) trigger("select", {index: 0, value: cell.block});
});
