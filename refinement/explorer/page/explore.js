"use strict";
(function () {
  const ask = window.ask;
  const make = window.behaviourPage.make;
  const at = (id) => document.getElementById(id);
  let begun = null;
  let walk = [];
  let future = [];
  let faults = [];
  let standing = null;
  let busy = Promise.resolve();

  const say = (text) => { at("message").textContent = text; };

  /** One thing after the other: each waits for that before it, and what goes wrong is shown. */
  function then(work) {
    busy = busy.then(work).catch((problem) => say(problem.message));
    return busy;
  }

  const call = ([action, args]) => action + "(" + Object.entries(args).map(([k, v]) => k + "=" + v).join(", ") + ")";

  /** The walk in the address, so that a reload and a link bring one back: `on_request:0,1`. */
  function write() {
    const words = new URLSearchParams(location.hash.slice(1));
    words.set("walk", walk.map(([action, args]) => [action, JSON.stringify(args)].join(":")).join(";"));
    words.set("faults", faults.join(","));
    history.replaceState(null, "", "#" + words);
  }

  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    if (!words.has("walk")) return false;
    try {
      walk = words.get("walk").split(";").filter(Boolean).map((step) => {
        const colon = step.indexOf(":");
        return [step.slice(0, colon), JSON.parse(step.slice(colon + 1))];
      });
    } catch (problem) {
      say("the address does not hold a behaviour: " + problem.message);
      return false;
    }
    faults = (words.get("faults") || "").split(",").filter(Boolean);
    return true;
  }

  async function stand(wanted) {
    const found = await ask("api/stand", { faults: faults, walk: wanted });
    standing = found;
    if (found.refused) future = [];
    say(found.refused ? "Not taken: " + found.refused : "");
    walk = found.walk;
    write();
    at("drawing").innerHTML = found.drawing;
    window.behaviourPage.load(found.story);
    window.behaviourPage.choose(walk.length);
    window.behaviourPage.applyFilter();
    show();
    at("choices").scrollTop = 0;
  }

  function take(step) {
    return then(() => {
      if (!(future.length && call(future[0]) === call(step))) future = [];
      else future = future.slice(1);
      return stand([...walk, step]);
    });
  }

  const back = () => walk.length && then(() => { future = [walk[walk.length - 1], ...future]; return stand(walk.slice(0, -1)); });
  const again = () => future.length && take(future[0]);
  const cut = () => then(() => {
    const length = window.behaviourPage.chosen();
    future = [...walk.slice(length), ...future];
    return stand(walk.slice(0, length));
  });
  const restart = () => then(() => { future = [...walk, ...future]; return stand([]); });

  async function chance() {
    for (let n = 0; n < 10; n++) {
      await busy;
      const all = standing.next.flatMap((group) => group.steps.map((step) => [group.action, step.args]));
      if (!all.length) return;
      await take(all[Math.floor(Math.random() * all.length)]);
    }
  }

  function showVerdict() {
    const ending = standing.story.ending;
    const box = at("verdict");
    box.className = ending ? "verdict bad" : "";
    box.textContent = ending ? "✗ breaks " + ending.id + " " + ending.title : "";
    at("length").textContent = walk.length + (walk.length === 1 ? " step" : " steps");
    at("undo").disabled = !walk.length;
    at("redo").disabled = !future.length;
    at("restart").disabled = !walk.length;
  }

  function showClaims() {
    at("claims").replaceChildren(...standing.claims.map((claim) => {
      const broken = claim.broken !== null;
      const state = broken ? "broken after step " + claim.broken : "holds" + (claim.met === false ? "; nothing to say yet: its witness is not met" : "");
      const name = "chip claim-chip" + (broken ? " bad" : claim.met === false ? " unmet" : "");
      return make("span", { class: name, title: claim.title + ": " + state + "\n" + claim.doc }, (broken ? "✗ " : claim.met === false ? "○ " : "✓ ") + claim.id);
    }));
  }

  function showChoices() {
    const words = at("choose").value.toLowerCase().split(/\s+/).filter(Boolean);
    const open = [], closed = [];
    for (const group of standing.next) {
      const buttons = group.steps.map((step) => choice(group, step)).filter((b) => words.every((w) => b.textContent.toLowerCase().includes(w)));
      if (buttons.length) {
        const mark = group.mark ? make("span", { class: "fault-word" }, " ⚑ " + group.mark) : null;
        open.push(make("div", { class: "group" }, make("h3", { title: group.doc }, group.action, mark), ...buttons));
      } else if (!group.steps.length && words.every((w) => group.action.toLowerCase().includes(w))) {
        closed.push(make("p", { class: "not", title: group.doc }, make("b", {}, group.action), make("br"), make("code", {}, group.nearest)));
      }
    }
    const none = open.length ? null : make("p", { class: "empty" }, words.length ? "None of them has that." : "No step can be taken here.");
    at("choice-list").replaceChildren(...[none, ...open].filter(Boolean), make("h3", {}, "Not enabled, and the nearest reason"), ...closed);
  }

  function choice(group, step) {
    const effects = step.changes.map(([name, index, before, after]) => name + (index.length ? "[" + index.join(", ") + "]" : "") + ": " + before + " → " + after);
    const shown = effects.slice(0, 4).join(" · ") + (effects.length > 4 ? " · …" : "");
    const button = make("button", { type: "button", class: "choice" + (step.breaks ? " breaks" : ""), title: effects.join("\n"), "data-step": call([group.action, step.args]) },
      make("code", {}, call([group.action, step.args])), step.breaks ? make("b", {}, "  ✗ breaks " + step.breaks) : null, make("span", { class: "effect" }, shown || "changes nothing"));
    button.addEventListener("click", () => take([group.action, step.args]));
    return button;
  }

  function show() {
    showVerdict();
    showClaims();
    showChoices();
    at("switched").textContent = faults.length ? "(" + faults.length + ")" : "";
    for (const box of document.querySelectorAll("#fault-list input[type=checkbox]")) box.checked = faults.includes(box.value);
  }

  function toggle(box) {
    const before = faults;
    faults = box.checked ? [...faults, box.value] : faults.filter((id) => id !== box.value);
    return then(() => stand(walk).catch((problem) => {
      faults = before;
      box.checked = before.includes(box.value);
      throw problem;
    }));
  }

  function fillFaults() {
    const rows = begun.faults.map(({ id, doc }) => {
      const box = make("input", { type: "checkbox", value: id });
      box.addEventListener("change", () => toggle(box));
      return make("label", {}, box, " ", make("b", {}, id), " " + doc);
    });
    at("fault-list").replaceChildren(...(rows.length ? rows : [make("p", { class: "empty" }, "No known mistake is in this model.")]));
  }

  function fillGoals() {
    const button = (id, title, doc, breaks) => {
      const made = make("button", { type: "button", title: doc, "data-goal": id }, make("b", {}, id), " " + title);
      made.addEventListener("click", () => { at("goals").open = false; then(() => search(id, breaks)); });
      return made;
    };
    at("goal-list").replaceChildren(
      make("h3", {}, "A shortest way to a state in which the claim says something"), ...begun.witnesses.map((w) => button(w.id, w.title, w.doc, false)),
      make("h3", {}, "A shortest way to a break"), ...standing.claims.map((c) => button(c.id, c.title, c.doc, true)));
  }

  async function search(id, breaks) {
    await ask("api/search", { faults: faults, walk: [], id: id, breaks: breaks });
    poll(id, breaks);
  }

  async function poll(id, breaks) {
    let found;
    try {
      found = await ask("api/search");
    } catch (problem) {
      return say(problem.message);
    }
    if (found.running) {
      const stop = make("button", { type: "button" }, "stop");
      stop.addEventListener("click", () => ask("api/stop", {}).catch((problem) => say(problem.message)));
      at("searching").replaceChildren("searching for " + id + ": " + found.states.toLocaleString() + " states ", stop);
      return setTimeout(() => poll(id, breaks), 300);
    }
    at("searching").replaceChildren();
    if (found.error) return say("The search for " + id + " ended: " + found.error);
    if (found.walk === null) return say("Nothing was found within the bounds of the search.");
    if (!found.walk.length && !breaks) return say("No reachable state of this model is one.");
    if (!found.walk.length) return say(id + " holds in every state of this model.");
    then(() => { future = []; return stand(found.walk); });
  }

  function fillSave() {
    const names = { python: "a scenario test (Python)", itf: "a trace in ITF (Apalache, Quint, vsr check --import)", page: "a page (HTML)", json: "the story (JSON)" };
    at("save-list").replaceChildren(...begun.forms.map((form) => {
      const button = make("button", { type: "button", "data-form": form }, names[form]);
      button.addEventListener("click", () => { at("save").open = false; then(() => download(form)); });
      return button;
    }));
  }

  async function download(form) {
    const found = await ask("api/save", { form: form, faults: faults, walk: walk });
    const link = make("a", { href: URL.createObjectURL(new Blob([found.text], { type: "text/plain" })), download: found.name });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  const keys = { u: back, Backspace: back, r: again, c: cut, x: chance, n: () => at("choose").focus() };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "Escape") document.querySelectorAll(".menu[open]").forEach((menu) => { menu.open = false; });
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.addEventListener("click", (event) => document.querySelectorAll(".menu[open]").forEach((menu) => {
    if (!menu.contains(event.target)) menu.open = false;
  }));
  const buttons = { undo: back, redo: again, cut: cut, restart: restart, random: chance };
  for (const [id, work] of Object.entries(buttons)) at(id).addEventListener("click", work);
  at("choose").addEventListener("input", () => standing && showChoices());

  then(async () => {
    begun = await ask("api/begin");
    if (!read()) {
      walk = begun.walk;
      faults = begun.switched;
    }
    fillFaults();
    fillSave();
    at("goals").hidden = !begun.searches;
    at("faults").hidden = !begun.faults.length;
    await stand(walk);
    fillGoals();
    document.body.dataset.ready = "yes";
  });
})();
