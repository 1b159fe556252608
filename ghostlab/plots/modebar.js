// Every figure can be saved as SVG and as PNG from its own bar. Given to Plotly before it draws anything.
const ghostlabModebar = (Plotly) => {
  const png = {
    name: "png",
    title: "Download as PNG",
    icon: Plotly.Icons.camera,
    click: (figure) => Plotly.downloadImage(figure, {format: "png", scale: 3, filename: "ghostlab"}),
  };
  const svg = {
    name: "svg",
    title: "Download as SVG",
    icon: Plotly.Icons.disk,
    click: (figure) => Plotly.downloadImage(figure, {format: "svg", filename: "ghostlab"}),
  };
  Plotly.setPlotConfig({
    displaylogo: false,
    toImageButtonOptions: {format: "svg", filename: "ghostlab"},
    modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d"],
    modeBarButtonsToAdd: [svg, png],
  });
};
