// The token of a sign-in through the provider comes behind #, which no server sees. It is posted, and taken out of the history.
(() => {
  "use strict";
  const form = document.getElementById("callback");
  if (!form) return;
  form.elements.access_token.value = new URLSearchParams(location.hash.slice(1)).get("access_token") || "";
  history.replaceState(null, "", location.pathname);
  form.submit();
})();
