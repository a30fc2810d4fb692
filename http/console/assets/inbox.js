// Keeps a page of the inbox up to date. The server tells which contacts have changed, and the page gets its own part again.
(() => {
  "use strict";
  const live = document.querySelector("[data-news]"), said = document.getElementById("said");
  if (!live) return;
  const of = Number(live.dataset.contact || 0);
  let source = null, due = 0, last = 0;

  // A busy workspace changes many times a second, and nobody reads that fast.
  const look = () => {
    due ||= setTimeout(() => { due = 0; last = Date.now(); htmx.trigger(live, "news"); }, Math.max(0, last + 1000 - Date.now()));
  };
  const listen = () => {
    source = new EventSource(live.dataset.news);
    source.addEventListener("news", e => {
      const contacts = JSON.parse(e.data).contacts; // none at the beginning: something may have changed before
      if (!of || !contacts.length || contacts.includes(of)) look();
    });
    source.onerror = () => { if (source && source.readyState === EventSource.CLOSED) { look(); source = null; setTimeout(wake, 10000); } };
  };
  live.addEventListener("htmx:afterRequest", e => { if (e.detail.xhr.getResponseHeader("Bahi-Stale")) look(); }); // the tables were late
  // A tab that nobody sees holds no connection: a browser has six for a server.
  const wake = () => {
    if (document.hidden) { source?.close(); source = null; return; }
    if (!source) listen();
  };
  document.addEventListener("visibilitychange", wake);
  listen();

  if (!said) return;
  let before = live.querySelectorAll(".talk .in").length;
  live.addEventListener("htmx:afterSwap", () => {
    const rows = live.querySelectorAll(".talk .in");
    if (rows.length > before) said.textContent = rows[rows.length - 1].innerText;
    before = rows.length;
  });
})();
