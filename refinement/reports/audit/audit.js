"use strict";
(function () {
  const at = (id) => document.getElementById(id);
  const page = window.behaviourPage;
  const count = document.querySelectorAll("template").length;
  let shown = 0;

  const wanted = () => Number(new URLSearchParams(location.hash.slice(1)).get("violation")) || 0;

  /** The violation that the address names, or the report. */
  function show() {
    const part = at("told-" + wanted());
    at("viewer").hidden = !part;
    at("overview").hidden = Boolean(part);
    if (!part) {
      shown = 0;
      page.unload();
    } else if (shown !== wanted()) {
      shown = wanted();
      at("about").replaceChildren(part.content.querySelector(".about-it").cloneNode(true));
      at("drawing").replaceChildren(...part.content.querySelector(".drawn").cloneNode(true).childNodes);
      at("other").replaceChildren(...(count > 1 ? [link(-1, "before"), " " + shown + " of " + count + " ", link(1, "next")] : []));
      page.load(JSON.parse(at("story-" + shown).textContent));
      page.readHash();
    }
  }

  const other = (by) => "#violation=" + (((shown - 1 + by + count) % count) + 1);

  function link(by, text) {
    return page.make("a", { href: other(by) }, text);
  }

  const keys = { "[": () => other(-1), "]": () => other(1), Escape: () => "#" };
  document.addEventListener("keydown", (event) => {
    if (!shown || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (Object.hasOwn(keys, event.key)) location.hash = keys[event.key]();
  });
  at("runs-filter").addEventListener("input", (event) => {
    const word = event.target.value.toLowerCase();
    const rows = [...document.querySelectorAll("#runs tbody tr")];
    rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(word); });
    at("runs-shown").textContent = word ? rows.filter((row) => !row.hidden).length + " of " + rows.length : "";
  });

  /** What is folded is printed, too. */
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
  addEventListener("hashchange", show);
  show();
})();
