// One tooltip for all generated tokens: by pointer, by tap, and by Tab and the arrow keys (one stop per text).
(() => {
  const SELECTOR = ".gl-token[data-tip]";
  const tip = Object.assign(document.createElement("div"), {id: "gl-token-tip", className: "gl-token-tip", role: "tooltip"});
  let told = null;
  const tokenOf = (target) => target?.closest?.(SELECTOR) ?? null;
  const place = () => {
    if (!told?.isConnected) return tell(null);
    const word = told.getClientRects()[0], box = tip.getBoundingClientRect();
    const left = word.left + (word.width - box.width) / 2, above = word.top - box.height - 6;
    tip.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - box.width - 8))}px`;
    tip.style.top = `${above < 8 ? word.bottom + 6 : above}px`;
  };
  const tell = (token) => {
    if (token === told) return;
    told?.removeAttribute("aria-describedby");
    told = token;
    if (!token) return tip.remove();
    tip.textContent = token.dataset.tip;
    (token.closest(".gradio-container") ?? document.body).append(tip);
    token.setAttribute("aria-describedby", tip.id);
    place();
  };
  const move = (event) => {
    if (event.key === "Escape") return tell(null);
    const from = tokenOf(event.target);
    const all = [...(from?.parentElement.querySelectorAll(SELECTOR) ?? [])], at = all.indexOf(from);
    const to = all[{ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1}[event.key]];
    if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    to.focus();
  };
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") tell(tokenOf(event.target) ?? tokenOf(document.activeElement));
  });
  document.addEventListener("pointerup", (event) => {
    if (event.pointerType === "touch") tell(tokenOf(event.target));
  });
  document.addEventListener("focusin", (event) => {
    const token = tokenOf(event.target);
    tell(token);
    if (!token) return;
    token.parentElement.querySelectorAll(SELECTOR).forEach((other) => { other.tabIndex = -1; });
    token.tabIndex = 0;
  });
  document.addEventListener("focusout", () => tell(null));
  document.addEventListener("keydown", move);
  document.addEventListener("scroll", place, {capture: true, passive: true});
})();
