element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-job]");
  if (button) trigger("click", {job: button.dataset.job, act: button.dataset.act});
});
