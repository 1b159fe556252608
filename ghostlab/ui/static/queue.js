// The list of a page's jobs: a click on a button says which job, and what to do with it.
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-job]");
  if (button) trigger("click", {job: button.dataset.job, act: button.dataset.act});
});
