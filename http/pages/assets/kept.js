// A form without a response, or whose session has ended, comes back with its values and its key when its page is opened again.
(() => {
  "use strict";
  const name = "bahi-kept", ended = document.getElementById("ended"), unsent = document.getElementById("unsent");
  const keep = kept => { if (kept) sessionStorage.setItem(name, JSON.stringify(kept)); else sessionStorage.removeItem(name); };
  const kept = JSON.parse(sessionStorage.getItem(name));
  const hidden = (form, input) => form.querySelector(`[type=hidden][name=${input}]`)?.value;
  const purpose = form => [new URL(form.action).pathname, ...["workspace", "do", "id", "new"].map(input => hidden(form, input))].join(" ");
  const typed = e => e.name && (e.type !== "hidden" || ["key", "revision", "base"].includes(e.name)) &&
    !["submit", "password", "file"].includes(e.type);
  const picked = e => e.type === "radio" || e.type === "checkbox";

  document.addEventListener("submit", e => {
    if (e.defaultPrevented) return; // unsent.js sends it
    if (e.target.matches(`[action="/app/sign-out"]`)) keep(null);
    if (!e.target.matches("main form[method=post]") || !hidden(e.target, "here")) return;
    const values = [...e.target.elements].filter(i => typed(i) && (!picked(i) || i.checked)).map(i => [i.name, i.value]);
    keep({purpose: purpose(e.target), values});
  });

  const fill = form => {
    for (const [input] of kept.values) {
      const line = /^(.+)\[\d+\]\./.exec(input), lines = line && form.querySelector(`[data-lines="${line[1]}"]`);
      if (lines && !form.elements[input]) lines.dispatchEvent(new Event("line", {bubbles: true}));
    }
    for (const e of [...form.elements].filter(typed)) {
      const value = kept.values.find(([input, text]) => input === e.name && (!picked(e) || text === e.value));
      if (picked(e)) e.checked = Boolean(value);
      else if (value) e.value = value[1];
    }
    for (let e = form; e; e = e.parentElement) if (e.matches("details")) e.open = true;
    form.classList.add("open");
    document.getElementById("back").hidden = false;
    form.dispatchEvent(new Event("input", {bubbles: true}));
  };
  if (ended && kept) {
    ended.hidden = false;
    keep({...kept, ended: true});
  }
  else if (unsent && kept) {
    const answered = !kept.ended && ("posted" in unsent.dataset || performance.getEntriesByType("navigation")[0].redirectCount);
    const form = !answered && [...document.querySelectorAll("main form[method=post]")].find(f => purpose(f) === kept.purpose);
    if (form) fill(form);
    if (form || answered) keep(null);
  }
})();
