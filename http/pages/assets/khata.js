// The rows of a khata page: Enter accepts a row and goes to the next one that is not accepted, at last to the button. Where an account is
// unknown, it goes to the ledger of the new account, and then opens it.
(() => {
  "use strict";
  const form = document.getElementById("check");
  if (!form) return;
  const accept = row => row.querySelector(".accept input");
  let handled = false;
  form.addEventListener("keydown", e => {
    handled = false;
    const row = e.target.closest(".khata-row");
    if (e.key !== "Enter" || e.ctrlKey || !row || !e.target.matches("input, select")) return;
    e.preventDefault();
    e.stopPropagation();
    handled = true;
    const inputs = [...row.querySelectorAll(".khata-fields :is(input, select)")].filter(i => i.offsetParent), at = inputs.indexOf(e.target);
    const opening = row.querySelector(".opening select"), account = row.querySelector(".account input");
    if (opening && e.target === opening) return row.querySelector("[name=open]").click();
    if (opening && at < 0 && account.value === account.defaultValue) return opening.focus();
    if (at >= 0) return (inputs[at + 1] || accept(row)).focus();
    const box = accept(row), rows = [...form.querySelectorAll(".khata-row")];
    box.checked = true;
    box.dispatchEvent(new Event("input", {bubbles: true}));
    const rest = rows.slice(rows.indexOf(row) + 1).find(r => !accept(r).checked && !r.matches(".added"));
    (rest ? accept(rest) : form.querySelector(".primary")).focus();
  });
  form.addEventListener("keypress", e => { if (handled) e.preventDefault(); }); // some send it all the same
  form.addEventListener("input", e => {
    const row = e.target.closest(".khata-row");
    if (!row || e.target === accept(row)) return;
    if (row.matches(".added")) accept(row).checked = true;
    const inputs = [...row.querySelectorAll(".khata-fields .field:not(.opening) :is(input, select)")];
    row.querySelector(".read span").textContent = inputs.map(i => i.selectedOptions ? i.selectedOptions[0].text : i.value).filter(Boolean).join(" · ");
  });
})();
