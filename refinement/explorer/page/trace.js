"use strict";
(function () {
  const page = window.behaviourPage;
  const ask = window.ask;
  const make = page.make;
  const at = (id) => document.getElementById(id);
  let begun = null;
  let shown = null;
  let event = 0;
  let busy = Promise.resolve();

  const say = (text) => { at("message").textContent = text; };

  function then(work) {
    busy = busy.then(work).catch((problem) => say(problem.message));
    return busy;
  }

  /** Show an event: in the window that is there, or in one around it. */
  async function go(number) {
    const wanted = Math.max(begun.first, Math.min(begun.total, number));
    say("");
    if (!shown || wanted < shown.from || wanted > shown.to) {
      shown = await ask("api/window", { event: wanted });
      at("drawing").innerHTML = shown.drawing;
      page.load(shown.story);
      page.applyFilter();
    }
    page.choose(wanted - shown.from + 1);
  }

  const to = (number) => then(() => go(number));
  const by = (events) => then(() => go(event + events));

  /** What follows when a step of the window is chosen. */
  function chose(number) {
    if (!shown || !number) return;
    event = shown.from + number - 1;
    at("event").value = event;
    at("place").textContent = event.toLocaleString() + " of " + begun.total.toLocaleString() + (begun.recorded > begun.total ? " (" + begun.recorded.toLocaleString() + " recorded)" : "");
    const words = new URLSearchParams(location.hash.slice(1));
    words.set("event", event);
    words.delete("step");
    history.replaceState(null, "", "#" + words);
  }

  const whyNot = async (number, action) => (await ask("api/why-not", { event: shown.from + number - 1, action: action })).rows;

  function fork() {
    then(async () => { location.assign((await ask("api/fork", { event: event })).path); });
  }

  const signs = { boot: "⚡", gap: "✂", unknown: "?", view: "view" };
  const forms = { page: "a page (HTML) of the events around", python: "a scenario test (Python) of the events so far", json: "the events around (JSON)" };

  async function download(form) {
    const found = await ask("api/save", { form: form, event: event });
    const link = make("a", { href: URL.createObjectURL(new Blob([found.text], { type: "text/plain" })), download: found.name });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function fill() {
    Object.assign(at("event"), { min: begun.first, max: begun.total });
    at("refused").hidden = !begun.refused;
    at("marks").append(...begun.marks.map((mark) => make("option", { value: mark.event }, mark.event + ": " + signs[mark.kind] + " " + mark.text + ", node " + mark.node)));
    at("save-list").replaceChildren(...Object.entries(forms).map(([form, text]) => {
      const button = make("button", { type: "button", "data-form": form }, text);
      button.addEventListener("click", () => { at("save").open = false; then(() => download(form)); });
      return button;
    }));
  }

  const moves = {
    PageUp: () => by(-10), PageDown: () => by(10), Home: () => to(begun.first), End: () => to(begun.total),
    v: () => begun.refused && to(begun.refused), f: fork,
  };
  document.addEventListener("keydown", (key) => {
    if (key.ctrlKey || key.metaKey || key.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(key.target.tagName)) return;
    if (key.key === "Escape") at("save").open = false;
    if (!begun || !Object.hasOwn(moves, key.key)) return;
    key.preventDefault();
    key.stopImmediatePropagation();
    moves[key.key]();
  }, true);
  const buttons = { first: "Home", "back-ten": "PageUp", "on-ten": "PageDown", end: "End", refused: "v", fork: "f" };
  for (const [id, key] of Object.entries(buttons)) at(id).addEventListener("click", () => moves[key]());
  at("event").addEventListener("input", () => { at("place").textContent = at("event").value; });
  at("event").addEventListener("change", () => to(Number(at("event").value)));
  at("marks").addEventListener("change", () => {
    if (at("marks").value) to(Number(at("marks").value));
    at("marks").value = "";
  });
  page.hooks.chose = chose;
  page.hooks.whyNot = whyNot;
  page.hooks.edge = by;
  then(async () => {
    begun = await ask("api/begin");
    fill();
    const words = new URLSearchParams(location.hash.slice(1));
    await go(Number(words.get("event")) || begun.refused || begun.first);
    document.body.dataset.ready = "yes";
  });
})();
