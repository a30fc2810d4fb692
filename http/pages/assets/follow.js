// Parts that change while the page is open. A part is an element with an id. data-stream is the event stream that reports its changes.
// Without a stream, data-again is the number of seconds until the part is read again. The server draws the part, as the whole page has it.
(() => {
  "use strict";
  const seen = part => part.innerHTML.replace(/name="key" value="[^"]*"| open=""/g, ""); // each drawing of a form has another key, and is closed
  const refresh = async part => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const drawn = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (!drawn) return location.reload();
    for (const name of ["data-stream", "data-again"]) if (!drawn.hasAttribute(name)) part.removeAttribute(name);
    if (seen(drawn) === seen(part)) return;
    const at = document.activeElement, link = at.getAttribute("href");
    const held = part.contains(at) && (at.id ? `#${CSS.escape(at.id)}` : link && `a[href="${CSS.escape(link)}"]`);
    const scrolled = [...part.querySelectorAll("[role=region]")].map(e => [e.scrollLeft, e.scrollTop]);
    part.replaceChildren(...drawn.childNodes);
    part.querySelectorAll("[role=region]").forEach((e, i) => { if (scrolled[i]) e.scrollTo(...scrolled[i]); });
    if (held) part.querySelector(held)?.focus({preventScroll: true});
    part.dispatchEvent(new CustomEvent("drawn", {bubbles: true}));
  };
  for (const part of document.querySelectorAll("[data-stream]")) {
    let timer = 0;
    const soon = () => { timer ||= setTimeout(async () => { timer = 0; await refresh(part); if (!part.dataset.stream) source.close(); }, 1000); };
    const source = new EventSource(part.dataset.stream);
    source.onopen = source.onmessage = soon; // something may have changed before it was open
    for (const name of (part.dataset.events || "").split(" ").filter(Boolean)) source.addEventListener(name, soon);
  }
  for (const part of document.querySelectorAll("[data-again]")) {
    const again = () => setTimeout(async () => { await refresh(part); if (part.dataset.again) again(); }, 1000 * Number(part.dataset.again));
    again();
  }
})();
