// Keys, lines and previews. Every page works without it.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const inputs = form => [...form.querySelectorAll("input:not([type=hidden]):not([type=radio]), select, textarea, button.primary")]
    .filter(e => e.offsetParent && !e.classList.contains("computed") && !e.dataset.skip);

  // A preview is the answer of a dry run, a moment after the last key.
  for (const form of document.querySelectorAll("form[data-preview]")) {
    const shown = form.querySelector(".preview");
    let timer = 0, turn = 0;
    const look = async () => {
      const body = new URLSearchParams(new FormData(form)), mine = ++turn;
      body.set("preview", "part");
      const answer = await fetch(form.action, {method: "POST", body}).catch(() => null);
      if (!answer || !answer.ok || mine !== turn) return;
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      const computed = new Map([...part.querySelectorAll("data")].map(d => [d.value, d.textContent]));
      for (const e of form.querySelectorAll(".line input")) {
        e.placeholder = computed.get(e.name) || "";
        e.classList.toggle("computed", computed.has(e.name) && !e.value);
      }
      shown.replaceChildren(...part.body.childNodes);
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 300); });
    form.addEventListener("submit", () => { clearTimeout(timer); turn++; });
  }

  // Another line has the names of the last one, with the next number.
  const addLine = lines => {
    const all = lines.querySelectorAll(".line"), last = all[all.length - 1], n = all.length, line = last.cloneNode(true);
    for (const e of line.querySelectorAll("[name], [id], [for], [aria-describedby]")) {
      for (const a of ["name", "id", "for", "aria-describedby"]) {
        if (e.hasAttribute(a)) e.setAttribute(a, e.getAttribute(a).replace(`[${n - 1}]`, `[${n}]`).replace(`-${n - 1}-`, `-${n}-`));
      }
      if ("value" in e && e.name) { e.value = ""; e.placeholder = ""; e.classList.remove("computed"); e.removeAttribute("aria-invalid"); }
    }
    last.after(line);
    return line;
  };
  document.addEventListener("line", e => addLine(e.target));
  const empty = line => [...line.querySelectorAll("input, select")].every(e => !e.value);

  // A day is typed as 5, 5/10 or -1.
  const dayOf = text => {
    const now = new Date();
    if (/^-\d+$/.test(text)) now.setDate(now.getDate() + Number(text));
    else {
      const [day, month, year] = text.split(/[/.-]/).map(Number);
      if (!day) return "";
      if (month) now.setMonth(month - 1, 1);
      if (year) now.setFullYear(year < 100 ? 2000 + year : year);
      now.setDate(day);
    }
    return [now.getFullYear(), String(now.getMonth() + 1).padStart(2, "0"), String(now.getDate()).padStart(2, "0")].join("-");
  };

  const entry = document.getElementById("entry");
  const to = e => { e?.focus(); e?.select?.(); };
  // Enter goes to the next field; after the last one of a line to the next line; on an empty line to what follows the lines. In a form
  // whose lines are all empty it goes on inside the line, to the amount of a row without an item.
  const goOn = (form, at) => {
    const line = at.closest(".line"), all = inputs(form), rest = all.slice(all.indexOf(at) + 1), next = rest[0];
    const ends = next?.closest(".line") !== line, begun = [...form.querySelectorAll(".line")].some(l => !empty(l));
    if (line && empty(line) && (begun || ends)) return to(rest.find(e => !line.parentNode.contains(e)));
    if (line && ends) {
      const after = line.nextElementSibling || addLine(line.parentNode);
      return to(after.querySelector("input"));
    }
    to(next);
  };
  const press = (e, id) => { const b = document.getElementById(id); if (b) { e.preventDefault(); b.click(); } };
  const alts = {KeyC: "open-account", KeyL: "again", KeyP: "statement", KeyZ: "undo", Equal: "settle"}; // by the key's place: layouts differ
  for (const b of document.querySelectorAll("[data-open]")) b.addEventListener("click", () => {
    entry.classList.add("open");
    document.getElementById("side-" + b.dataset.open).click();
    entry.querySelector(`[data-lines=${b.dataset.open}_entries] input`).focus();
  });
  let handled = false;
  document.addEventListener("keydown", e => {
    handled = false;
    const form = e.target.closest?.("form[data-preview]"), typing = e.target.matches?.("input, textarea, select");
    const saved = form || typing && e.target.form;
    if (e.key === "Enter" && e.ctrlKey && saved?.method === "post") {
      e.preventDefault();
      handled = true;
      saved.requestSubmit(saved.querySelector("button.primary"));
    }
    else if (e.key === "Enter" && form && e.target.matches("input, select")) { e.preventDefault(); handled = true; goOn(form, e.target); }
    else if (e.key === "F2" && entry) {
      e.preventDefault();
      const date = entry.querySelector("[type=date]"), text = prompt(date.labels[0].textContent), day = text && dayOf(text.trim());
      if (day) { date.value = day; date.dispatchEvent(new Event("input", {bubbles: true})); }
    }
    else if (e.key === "F4" && entry) {
      e.preventDefault();
      const side = document.getElementById("side-in").checked ? "out" : "in";
      document.getElementById("side-" + side).click();
      entry.querySelector(`[data-lines=${side}_entries] input`).focus();
    }
    else if (e.altKey && alts[e.code]) press(e, alts[e.code]);
    else if (e.key === "?" && !typing) press(e, "show-keys");
    else if (e.key === "/" && !typing || e.key === "k" && e.ctrlKey) {
      const find = document.getElementById("find");
      if (find) { e.preventDefault(); find.focus(); }
    }
    else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && (!typing || e.target.matches("#entry input:not([list], [type=radio])"))) { // F2 types a day
      const links = [...document.querySelectorAll(".rows tbody a")], at = links.indexOf(document.activeElement);
      const next = links[at < 0 ? 0 : at + (e.key === "ArrowDown" ? 1 : -1)]; // the first one is the newest
      if (next) { e.preventDefault(); next.focus(); }
    }
  });
  document.addEventListener("keypress", e => { if (handled) e.preventDefault(); }); // some browsers send it after a handled keydown
  document.querySelector(".where select")?.addEventListener("change", e => e.target.form.requestSubmit());
  if (!document.querySelector("[autofocus]") && !matchMedia("(pointer: coarse)").matches) {
    const correct = document.getElementById("do-edit"), form = correct?.parentNode.querySelector("details[open]") ? null : correct;
    if (form) form.open = true;
    ((entry || form)?.querySelector("[type=date]") || document.querySelector("#account, #file"))?.focus();
  }
})();
