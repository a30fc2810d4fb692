// The documentation: the list follows what is typed, and commands have a button that copies them.
(() => {
  "use strict";
  for (const block of document.querySelectorAll("pre[data-copy]")) {
    const button = Object.assign(document.createElement("button"), {type: "button", className: "copy", textContent: block.dataset.copy});
    const code = block.querySelector("code");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent).then(() => { button.textContent = block.dataset.copied; },
        () => getSelection().selectAllChildren(code)); // a browser lets only safe addresses copy
    });
    block.prepend(button);
  }
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
