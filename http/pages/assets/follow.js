// Parts that change while the page is open. A part is an element with an id: data-stream names the event stream that tells of changes,
// data-again the seconds after which it is read again without one. The server draws the part, as the whole page has it.
(() => {
  "use strict";
  const refresh = async part => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const drawn = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (!drawn) return location.reload();
    for (const name of ["data-stream", "data-again"]) if (!drawn.hasAttribute(name)) part.removeAttribute(name);
    if (drawn.innerHTML === part.innerHTML) return;
    part.replaceChildren(...drawn.childNodes);
    part.dispatchEvent(new CustomEvent("drawn", {bubbles: true}));
  };
  for (const part of document.querySelectorAll("[data-stream]")) {
    let timer = 0;
    const soon = () => { timer ||= setTimeout(async () => { await refresh(part); timer = 0; if (!part.dataset.stream) source.close(); }, 1000); };
    const source = new EventSource(part.dataset.stream);
    source.onmessage = soon;
    for (const name of (part.dataset.events || "").split(" ").filter(Boolean)) source.addEventListener(name, soon);
  }
  for (const part of document.querySelectorAll("[data-again]")) {
    const again = () => setTimeout(async () => { await refresh(part); if (part.dataset.again) again(); }, 1000 * Number(part.dataset.again));
    again();
  }
})();
