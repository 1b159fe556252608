// A click on a dot of the scores' chart takes its block. gr.Plot has no events; plotly's own are heard from the moment
// the pointer comes over the chart.
const box = element.closest("#choice");
box.addEventListener("pointerover", (event) => {
  const chart = event.target.closest("#scores .js-plotly-plot");
  if (!chart?.on || chart.dataset.listens) return;
  chart.dataset.listens = "yes";
  chart.on("plotly_click", ({points}) => {
    const point = points.find((each) => each.customdata);
    if (point) trigger("select", {index: point.pointNumber, value: String(point.customdata)});
  });
});
