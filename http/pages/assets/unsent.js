// Rows without a connection. A row that cannot be sent stays in this browser with its key, so that it is written once however often it is
// sent. The line on top lists these rows; a row that the books refuse stays there with the reason until a person discards it.
(() => {
  "use strict";
  const shown = document.getElementById("unsent"), entry = document.getElementById("entry");
  if (!shown) return;
  const name = "bahi-unsent", read = () => JSON.parse(localStorage.getItem(name) || "[]");
  const keep = rows => { if (rows.length) localStorage.setItem(name, JSON.stringify(rows)); else localStorage.removeItem(name); };
  const post = (action, body) => fetch(action, {method: "POST", body, redirect: "manual", headers: {"X-Requested-With": "fetch"}}).catch(() => null);

  const draw = () => {
    const rows = read(), line = shown.querySelector("template").content.firstElementChild;
    shown.hidden = !rows.length;
    shown.querySelector("b").textContent = shown.dataset.text.replace("%s", rows.length);
    shown.querySelector("ul").replaceChildren(...rows.map(row => {
      const drawn = line.cloneNode(true);
      drawn.querySelector("a").href = row.page;
      drawn.querySelector("a").textContent = row.name;
      drawn.querySelector("span").textContent = row.text;
      drawn.querySelector("em").textContent = row.why || "";
      drawn.querySelector("button").onclick = () => { keep(read().filter(r => r.key !== row.key)); draw(); };
      return drawn;
    }));
  };

  // The page in the response to the form has the reason of a refusal.
  const reason = async answer => {
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    return [...part.querySelectorAll(".wrong, .error")].map(e => e.textContent.trim()).join("; ") || String(answer.status);
  };
  const sendAll = async () => {
    if (shown.ariaBusy === "true") return;
    shown.ariaBusy = "true";
    const rows = read();
    for (const row of rows) {
      const body = new URLSearchParams(row.body);
      body.set("token", shown.dataset.token); // the current token: the row may be of an earlier session
      const answer = await post(row.action, body);
      if (!answer) break;
      const why = answer.ok ? "" : await reason(answer);
      keep(answer.ok ? read().filter(r => r.key !== row.key) : read().map(r => r.key === row.key ? {...r, why} : r));
    }
    shown.ariaBusy = "false";
    draw();
    const sent = rows.some(row => row.page === location.pathname && !read().some(r => r.key === row.key));
    if (sent && !typed(entry || shown).length) location.reload(); // for the new balance
  };

  const typed = form => [...form.querySelectorAll(".line :is(input, select)")].filter(e => e.value && e.offsetParent)
    .map(e => e.selectedOptions ? e.selectedOptions[0].text : e.value);
  const day = date => date.replace(/^(\d+)-(\d+)-(\d+)$/, (_, y, m, d) => `${d} ${shown.dataset.months.split(" ")[m - 1]} ${y}`);
  const empty = form => {
    for (const e of form.querySelectorAll(".line :is(input, select)")) { e.value = ""; e.placeholder = ""; e.classList.remove("computed"); }
    form.querySelector(".preview").replaceChildren();
    form.elements.key.value = [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, "0")).join("");
    form.querySelector("[type=date]").focus();
  };
  entry?.addEventListener("submit", async e => {
    if (e.submitter?.name) return; // a try
    e.preventDefault();
    const body = new URLSearchParams(new FormData(entry)), answer = await post(entry.action, body);
    if (answer?.ok) return location.assign(answer.headers.get("Location"));
    if (answer && answer.status !== 403 && answer.status < 500) return entry.submit(); // shows the refusal
    keep([...read(), {
      key: body.get("key"), action: entry.action, body: body.toString(), page: location.pathname,
      name: document.querySelector("h1").firstChild.textContent.trim(), text: [day(body.get("date")), ...typed(entry)].join(" · "),
      why: answer ? await reason(answer) : "", // such as a session that has ended
    }]);
    empty(entry);
    draw();
  });
  shown.querySelector("#send-now").onclick = sendAll;
  window.addEventListener("online", sendAll);
  document.querySelector(`form[action="/app/sign-out"]`)?.addEventListener("submit", e => {
    if (!read().length) return;
    if (!confirm(shown.dataset.leave)) return e.preventDefault();
    keep([]);
  });
  draw();
})();
