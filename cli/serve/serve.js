// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What pages do by themselves: the part that follows the store is fetched again when the store has changed,
// and Ctrl-Enter runs a statement. Without scripts all else works.
(function () {
  "use strict";
  var live = document.getElementById("live");
  var statement = document.getElementById("q");

  function fetchAgain() {
    fetch(location.href, { credentials: "same-origin" }).then(function (answer) {
      return answer.ok ? answer.text() : null;
    }).then(function (text) {
      var fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById("live");
      // What is picked or focused stays as it is until the next time.
      if (fresh && !live.contains(document.activeElement) && !live.querySelector("input:checked")) {
        live.replaceChildren.apply(live, Array.prototype.slice.call(fresh.childNodes));
      }
    }).catch(function () { /* the server is away: the next event comes with it */ });
  }

  if (live && live.dataset.events && window.EventSource) {
    var seen = null;
    new EventSource(live.dataset.events).addEventListener("store", function (event) {
      if (seen !== null && seen !== event.data) {
        fetchAgain();
      }
      seen = event.data;
    });
  }
  if (statement) {
    statement.addEventListener("keydown", function (event) {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        statement.form.submit();
      }
    });
  }
})();
