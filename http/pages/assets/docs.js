// The list of the documentation follows what is typed.
(() => {
  "use strict";
  const field = document.querySelector("[data-filter]");
  if (!field) return;
  let timer = 0, asked = null;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      asked?.abort();
      asked = new AbortController();
      const address = field.form.action + "?" + new URLSearchParams({q: field.value});
      const answer = await fetch(address, {signal: asked.signal}).then(a => a.text(), () => "");
      const drawn = new DOMParser().parseFromString(answer, "text/html").getElementById(field.dataset.filter);
      if (!drawn) return;
      document.getElementById(field.dataset.filter).replaceWith(drawn);
      history.replaceState(null, "", address);
    }, 150);
  });
})();
