// The inbox: keys, and messages that are marked as read when they are seen.
(() => {
  "use strict";
  const live = document.querySelector(".inbox #live");
  if (!live) return;
  const write = document.getElementById("write"), text = write?.querySelector("textarea");
  document.addEventListener("keydown", e => {
    if (e.altKey && e.key === "r") {
      const resolve = document.getElementById("resolve");
      if (resolve) { e.preventDefault(); resolve.click(); }
    }
    else if (e.key === "Escape" && e.target === text) live.querySelector("a[aria-current]")?.focus();
  });
  const see = async () => {
    const form = document.getElementById("read");
    if (!form || document.hidden) return;
    const answer = await fetch(form.action, {method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual"}).catch(() => null);
    if (answer?.type !== "opaqueredirect") return;
    form.remove();
    live.querySelector(".here .unread")?.remove();
  };
  live.addEventListener("drawn", see);
  document.addEventListener("visibilitychange", see);
  see();
  if (text && !document.querySelector("[autofocus]") && !matchMedia("(pointer: coarse)").matches) {
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }
})();

// An answer by mail marks the enquiry as answered.
document.querySelector('#acts a[href^="mailto:"]')?.addEventListener("click", () => {
  setTimeout(() => document.querySelector("form:has([value=mail]) button")?.click());
});
