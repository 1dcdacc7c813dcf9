"use strict";
(function () {
  /** Ask the server of the page; what it refuses is an error with its words. */
  async function ask(path, body) {
    const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    let answer;
    try {
      answer = await fetch(path, options);
    } catch (problem) {
      throw new Error("the server is gone: start vsr explore again, and reload this page");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  window.ask = ask;
})();
