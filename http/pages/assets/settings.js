// A button with data-copy copies the element that it names: an input or a text.
(() => {
  "use strict";
  document.addEventListener("click", async event => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.dataset.copy);
    from.select?.();
    await navigator.clipboard.writeText(from.value ?? from.textContent).then(() => { button.textContent = button.dataset.done; },
      () => { if (!from.select) getSelection().selectAllChildren(from); }); // a browser lets only safe addresses copy
  });
})();
