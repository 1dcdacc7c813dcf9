"use strict";
(function () {
  const SMALLEST = 0.6;
  let story = null;
  const details = document.getElementById("details");
  const tools = {};
  for (const id of ["filter", "by-action", "by-lane", "by-var"]) tools[id] = document.getElementById(id);
  let last = 0;
  let chosen = 0;
  let asked = "";
  let every = false;
  /** What a page around this one does: when a step is chosen, beyond the last one, and to answer why not. */
  const hooks = {};

  /** An element with attributes and children; texts are never parsed as HTML. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const place = (source) => source.file + ":" + source.line;
  const call = (step) => step.action + "(" + Object.entries(step.args).map(([k, v]) => k + "=" + v).join(", ") + ")";
  const sourceLink = (source) => (source.href ? make("a", { href: source.href }, make("code", {}, place(source))) : make("code", {}, place(source)));
  const cellName = ([name, index]) => name + (index.length ? "[" + index.join(", ") + "]" : "");

  const title = (step) => (Object.keys(step.args).length ? call(step) : step.action);

  /** Values of all cells after a number of steps, as texts. */
  function stateAfter(number) {
    const values = story.cells.map((cell) => cell[2]);
    for (const step of story.steps.slice(0, number)) for (const [cell, , after] of step.changes) values[cell] = after;
    return values;
  }

  function option(select, value, text) {
    select.append(make("option", { value: value }, text || value));
  }

  function fillSelects() {
    for (const id of ["by-action", "by-lane", "by-var"]) tools[id].replaceChildren(tools[id].options[0]);
    new Set(story.steps.map((step) => step.action)).forEach((name) => option(tools["by-action"], name));
    const sort = story.lanes.sort.toLowerCase();
    story.lanes.members.forEach((member) => option(tools["by-lane"], String(member), sort + " " + member));
    const changed = new Set(story.steps.flatMap((step) => step.changes.map((c) => story.cells[c[0]][0])));
    story.vars.filter((v) => changed.has(v.name)).forEach((v) => option(tools["by-var"], v.name));
  }

  /** All that a filter may find in a step. */
  function haystack(step) {
    const words = [call(step), place(step.source), step.mark, ...step.tags];
    for (const [cell, before, after] of step.changes) words.push(cellName(story.cells[cell]) + " " + before + " → " + after);
    for (const message of [...step.sends, ...step.uses]) words.push(message.message);
    return words.join("\n").toLowerCase();
  }
  let haystacks = [];

  function matches(step) {
    const words = tools.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const action = tools["by-action"].value, lane = tools["by-lane"].value, name = tools["by-var"].value;
    return words.every((word) => haystacks[step.number - 1].includes(word))
      && (!action || step.action === action)
      && (!lane || String(step.actor) === lane)
      && (!name || step.changes.some((c) => story.cells[c[0]][0] === name));
  }

  function applyFilter() {
    const shown = new Set(story.steps.filter(matches).map((step) => step.number));
    document.querySelectorAll(".step").forEach((e) => e.classList.toggle("dim", !shown.has(+e.dataset.step)));
    document.querySelectorAll(".arrow, .message").forEach((e) =>
      e.classList.toggle("dim", !shown.has(+e.dataset.first) && !shown.has(+e.dataset.last)));
    document.getElementById("shown").textContent = shown.size === last ? "" : shown.size + " of " + last + " steps";
    saveHash();
  }

  function section(title, ...children) {
    return [make("h3", {}, title), ...children];
  }

  function showMessages(step) {
    const chips = step.uses.map((used) =>
      make("a", { class: "chip", href: "#step=" + used.step }, "uses " + used.message + " of " + used.sender + " (step " + used.step + ")"));
    for (const sent of step.sends) {
      const users = story.steps.filter((other) => other.uses.some((u) => u.step === step.number && u.message === sent.message));
      const suffix = users.length ? ", used in " : " (nobody uses it here)";
      const chip = make("span", { class: "chip" }, "sends " + sent.message + suffix);
      users.forEach((other, n) => chip.append(n ? ", " : "", make("a", { href: "#step=" + other.number }, "step " + other.number)));
      chips.push(chip);
    }
    return chips.length ? section("Messages", make("div", {}, ...chips)) : [];
  }

  function showGuards(step) {
    if (!step.guards.length) return [];
    return section("Guard: why it could happen", ...step.guards.map((guard) =>
      make("div", { class: "guard", title: place(guard) }, make("code", {}, guard.text),
        guard.values.length ? make("code", { class: "values" }, guard.values.join(", ")) : null)));
  }

  /** What these variables are and what their indices mean, each once: ack[view, replica, op]. */
  function meanings(names) {
    return story.vars.filter((v) => v.index.length && names.includes(v.name)).map((v) =>
      make("p", { class: "soft meaning" }, make("code", {}, cellName([v.name, v.index.map((sort) => sort.toLowerCase())])), ": " + v.doc));
  }

  function showChanges(step) {
    const rows = step.changes.map(([cell, before, after]) =>
      make("tr", {}, make("td", {}, cellName(story.cells[cell])), make("td", { class: "default" }, before), make("td", {}, "→ " + after)));
    return section("Changed", rows.length ? make("table", {}, ...rows) : make("p", { class: "soft" }, "nothing"),
      ...meanings(step.changes.map(([cell]) => story.cells[cell][0])));
  }

  /** Answers that are asked for, of a state that is not all on the page. */
  function askWhyNot(number) {
    const select = make("select", { "aria-label": "Why not this action?" }, make("option", { value: "" }, "choose an action …"));
    story.asks.forEach((name) => option(select, name));
    const list = make("div", {});
    const refresh = async () => {
      asked = select.value;
      saveHash();
      const rows = asked ? await hooks.whyNot(number, asked) : [];
      list.replaceChildren(...rows.map((row) => make("div", { class: "guard " + (row.enabled ? "enabled" : "false") }, make("code", {}, row.text),
        row.values.length ? make("code", { class: "values" }, row.values.join(", ")) : null, row.place ? make("code", { class: "place" }, row.place) : null)));
    };
    select.value = story.asks.includes(asked) ? asked : "";
    select.addEventListener("change", refresh);
    if (select.value) refresh();
    return section("Why not, after this event?", select, list);
  }

  function showWhyNot(number) {
    if (hooks.whyNot && story.asks) return askWhyNot(number);
    if (!story.why_not) return [];
    const answers = story.why_not.steps[number];
    const select = make("select", { "aria-label": "Why not this action?" }, make("option", { value: "" }, "choose an action …"));
    for (const [name, rows] of Object.entries(answers)) {
      const enabled = rows.filter((row) => row[1] === -1).length;
      option(select, name, name + (enabled ? "  (" + enabled + " enabled)" : ""));
    }
    select.value = asked;
    const list = make("div", {});
    const refresh = () => {
      asked = select.value;
      list.replaceChildren(...(asked ? answers[asked].map((row) => reason(asked, row)) : []));
      if (asked && !story.why_not.complete) list.append(make("p", { class: "soft" }, "the nearest " + story.why_not.nearest + " only"));
      saveHash();
    };
    select.addEventListener("change", refresh);
    refresh();
    return section("Why not, after this step?", select, list);
  }

  function reason(name, [values, conjunct, text]) {
    const action = story.actions[name];
    const title = name + "(" + action.params.map((p, n) => p + "=" + values[n]).join(", ") + ")";
    const detail = story.why_not.texts[text];
    if (conjunct === -1) return make("div", { class: "guard enabled" }, make("code", {}, title + " is enabled"));
    if (conjunct === -2) return make("div", { class: "guard false" }, make("code", {}, title + " leaves the bounds"), make("code", { class: "values" }, detail));
    const guard = action.guards[conjunct];
    return make("div", { class: "guard false" }, make("code", {}, title + ":  " + guard.text),
      detail ? make("code", { class: "values" }, detail) : null, make("code", { class: "place" }, place(guard)));
  }

  /** A table of the variables that have one value per lane, then a list of the others. */
  function showState(number) {
    const values = stateAfter(number);
    const fresh = new Set(number ? story.steps[number - 1].changes.map((c) => c[0]) : []);
    const kinds = new Map(story.vars.map((v) => [v.name, v]));
    const perLane = new Map(), others = [];
    story.cells.forEach(([name, index, initial], n) => {
      const at = kinds.get(name).index.indexOf(story.lanes.sort);
      const { init = initial, own } = kinds.get(name);
      const live = values[n] !== init || fresh.has(n) || own;
      if (at < 0) {
        if (every || live) others.push(n);
        return;
      }
      const label = cellName([name, index.map((i, k) => (k === at ? "·" : i))]);
      const row = perLane.get(label) || { live: false, doc: kinds.get(name).doc, cells: new Map() };
      row.live = row.live || live;
      row.cells.set(index[at], n);
      perLane.set(label, row);
    });
    const head = make("tr", {}, make("th", {}, story.lanes.sort.toLowerCase()), ...story.lanes.members.map((m) => make("th", {}, String(m))));
    const table = make("table", {}, head);
    const style = (n) => (fresh.has(n) ? "new" : values[n] === story.cells[n][2] ? "default" : null);
    for (const [label, row] of perLane) {
      if (!every && !row.live) continue;
      table.append(make("tr", {}, make("td", { title: row.doc }, label), ...story.lanes.members.map((m) => {
        const n = row.cells.get(m);
        return n === undefined ? make("td", {}) : make("td", { class: style(n) }, values[n]);
      })));
    }
    const list = make("table", {}, ...others.map((n) => make("tr", {},
      make("td", { title: kinds.get(story.cells[n][0]).doc }, cellName(story.cells[n])), make("td", { class: style(n) }, values[n]))));
    const box = make("input", { type: "checkbox", id: "every" });
    box.checked = every;
    box.addEventListener("change", () => { every = box.checked; render(); });
    const toggle = make("label", { class: "soft" }, box, " " + (story.state_hint || "also what still has its initial value"));
    return section(story.state_title || "State after this step", toggle, make("div", { class: "scroll" }, table), make("div", { class: "scroll" }, list));
  }

  function render() {
    const top = details.scrollTop;
    if (!chosen) {
      details.replaceChildren(make("h2", {}, "Initial state"), ...showWhyNot(0), ...showState(0));
      return;
    }
    const step = story.steps[chosen - 1];
    const mark = step.mark ? make("p", { class: "fault-word" }, "⚑ mistake: " + step.mark) : null;
    const end = chosen === last && story.ending && !step.refused
      ? make("p", { class: story.ending.broken ? "bad chip" : "good chip" }, (story.ending.broken ? "✗ breaks " : "reaches ") + story.ending.id + " " + story.ending.title) : null;
    details.replaceChildren(
      make("h2", {}, (step.shown || chosen) + ". ", make("code", {}, title(step))),
      make("div", { class: "soft" }, sourceLink(step.source)),
      make("p", { class: "doc" }, step.doc.replace(/([^\n])\n(?!\n)/g, "$1 ")), ...[mark, end].filter(Boolean),
      ...showRefused(step), ...showUnknown(step), ...showMessages(step), ...showStandsFor(step), ...showFacts(step),
      ...showChanges(step), ...showGuards(step),
      ...showWhyNot(chosen), ...showState(chosen));
    details.scrollTop = top;
  }

  function choose(number, { scroll = true } = {}) {
    chosen = Math.max(0, Math.min(last, number));
    document.querySelectorAll(".step").forEach((e) => e.classList.toggle("chosen", +e.dataset.step === chosen));
    document.querySelectorAll(".arrow").forEach((e) =>
      e.classList.toggle("lit", +e.dataset.first === chosen || +e.dataset.last === chosen));
    render();
    saveHash();
    const box = document.getElementById("step-" + chosen);
    if (scroll && box) box.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (hooks.chose) hooks.chose(chosen);
  }

  /** Keeps what others have put there. */
  function saveHash() {
    const words = new URLSearchParams(location.hash.slice(1));
    for (const name of ["step", "why-not", ...Object.keys(tools)]) words.delete(name);
    words.set("step", chosen);
    for (const [id, element] of Object.entries(tools)) if (element.value) words.set(id, element.value);
    if (asked) words.set("why-not", asked);
    history.replaceState(null, "", "#" + words);
  }

  function readHash() {
    const words = new URLSearchParams(location.hash.slice(1));
    for (const [id, element] of Object.entries(tools)) if (words.has(id)) element.value = words.get(id);
    if (words.has("why-not") && words.get("why-not") in story.actions) asked = words.get("why-not");
    choose(words.has("step") ? Number(words.get("step")) || 0 : last);
    applyFilter();
  }

  /** The next step in a direction that the filter lets through. */
  function move(direction) {
    for (let n = chosen + direction; n >= (hooks.edge ? 1 : 0) && n <= last; n += direction) {
      if (n === 0 || matches(story.steps[n - 1])) return choose(n);
    }
    if (hooks.edge) hooks.edge(direction);
  }

  /** The steps of the specification that an event stood for, each with its guard. */
  function showStandsFor(step) {
    if (!step.stands_for) return [];
    if (!step.stands_for.length) return step.refused ? [] : section("Stands for", make("p", { class: "soft" }, "no step of the specification"));
    return step.stands_for.flatMap((one) => [
      ...section("Stands for " + (one.maybe ? "perhaps " : "") + one.call, make("code", { class: "soft" }, place(one.source))),
      ...one.guards.map((guard) => make("div", { class: "guard", title: place(guard) }, make("code", {}, guard.text),
        guard.values.length ? make("code", { class: "values" }, guard.values.join(", ")) : null))]);
  }

  function showUnknown(step) {
    const found = (step.unknown || []).map((text) => make("p", { class: "fault-word" }, "? " + text));
    return found.length ? section("Not known", ...found) : [];
  }

  /** What a line of a log says, beside the state of its node. */
  function showFacts(step) {
    return step.facts && step.facts.length ? section("This line", pairs(step.facts)) : [];
  }

  /** Why the last line is refused, and what else would have been. */
  function showRefused(step) {
    const found = step.refused;
    if (!found) return [];
    const why = found.why_not.map((text) => make("div", { class: "guard false" }, make("code", {}, text)));
    const jumps = found.changes.map((text) => make("p", { class: "fault-word" }, "on this line " + text));
    return [...section("Refused", pairs(found.rows)), ...jumps, ...(why.length ? section("Why not", ...why) : []),
      ...(found.state.length ? section("State of its node before it, by the specification", pairs(found.state)) : [])];
  }

  function pairs(rows) {
    const made = rows.map(([name, text]) => make("tr", {}, make("td", { class: "name" }, name), make("td", {}, text)));
    return make("div", { class: "scroll" }, make("table", {}, ...made));
  }

  const keys = {
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    Home: () => choose(0), End: () => choose(last), "/": () => tools.filter.focus(), t: () => document.getElementById("theme").click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!Object.hasOwn(keys, event.key)) return;
    if (!story && event.key !== "t") return;
    event.preventDefault();
    keys[event.key]();
  });
  details.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#step="]');
    if (!link) return;
    event.preventDefault();
    choose(Number(link.hash.slice(6)));
  });
  document.getElementById("drawing").addEventListener("click", (event) => {
    const box = event.target.closest(".step");
    if (!box) return;
    event.preventDefault();
    choose(+box.dataset.step, { scroll: false });
  });
  Object.values(tools).forEach((e) => e.addEventListener("input", () => story && applyFilter()));
  document.getElementById("tools").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("previous").addEventListener("click", () => move(-1));
  document.getElementById("next").addEventListener("click", () => move(1));
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  /** The drawing is made smaller until its lanes fit, down to where it can still be read. */
  function fit() {
    const drawing = document.getElementById("drawing");
    const lanes = drawing.querySelector(".lanes");
    if (lanes) drawing.style.zoom = Math.max(SMALLEST, Math.min(1, document.getElementById("diagram").clientWidth / parseFloat(lanes.style.width)));
  }

  function measure() {
    document.documentElement.style.setProperty("--head", document.getElementById("head").offsetHeight + "px");
    fit();
  }
  addEventListener("resize", measure);
  addEventListener("hashchange", () => story && readHash());

  /** Show a behaviour whose drawing is on the page, at the last of its steps. */
  function load(told) {
    story = told;
    last = story.steps.length;
    haystacks = story.steps.map(haystack);
    if (!(asked in story.actions) && !(story.asks || []).includes(asked)) asked = "";
    fillSelects();
    measure();
  }

  /** Show none any more. */
  function unload() {
    story = null;
    Object.values(tools).forEach((e) => { e.value = ""; });
  }

  const embedded = document.getElementById("story").textContent;
  window.behaviourPage = { hooks, load, unload, readHash, choose, applyFilter, chosen: () => chosen, make, cellName };
  if (embedded !== "null") {
    load(JSON.parse(embedded));
    readHash();
  }
})();
