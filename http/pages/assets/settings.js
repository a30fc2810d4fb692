// A button with data-copy copies the value of the input that it names.
(() => {
  "use strict";
  document.addEventListener("click", async event => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const input = document.getElementById(button.dataset.copy);
    input.select();
    await navigator.clipboard.writeText(input.value).then(() => { button.textContent = button.dataset.done; }, () => {});
  });
})();
