// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What pages do by themselves: the part that follows the store is fetched again when the store has changed,
// Ctrl-Enter runs a statement, and its words are completed. Without scripts all else works.
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
  // The list below the statement: the words that begin as the one in front of the cursor does.
  function completion(list, words) {
    var most = 12;
    var chosen = -1;

    function begun() {
      var before = statement.value.slice(0, statement.selectionStart);
      return statement.selectionStart === statement.selectionEnd ? /[A-Za-z_][A-Za-z0-9_]*$/.exec(before) : null;
    }

    function close() {
      list.hidden = true;
      list.replaceChildren();
      chosen = -1;
      statement.removeAttribute("aria-activedescendant");
    }

    function choose(index) {
      var items = list.children;
      chosen = (index + items.length) % items.length;
      for (var i = 0; i < items.length; i++) {
        items[i].setAttribute("aria-selected", i === chosen ? "true" : "false");
      }
      statement.setAttribute("aria-activedescendant", items[chosen].id);
    }

    function accept(word) {
      var start = statement.selectionStart - begun()[0].length;
      statement.setRangeText(word, start, statement.selectionStart, "end");
      close();
    }

    function open() {
      var word = begun();
      var found = word && word[0].length > 1 ? words.filter(function (other) {
        return other.length > word[0].length && other.toLowerCase().startsWith(word[0].toLowerCase());
      }).slice(0, most) : [];
      close();
      found.forEach(function (other, index) {
        var item = document.createElement("li");
        item.id = "completion-" + index;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        item.textContent = other;
        item.addEventListener("mousedown", function (event) {
          event.preventDefault();
          accept(other);
        });
        list.appendChild(item);
      });
      list.hidden = !found.length;
    }

    statement.setAttribute("aria-controls", list.id);
    statement.addEventListener("input", open);
    statement.addEventListener("blur", close);
    return function (event) {
      if (list.hidden) return;
      if (event.key === "ArrowDown") choose(chosen + 1);
      else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter" && chosen >= 0) accept(list.children[chosen].textContent);
      else return;
      event.preventDefault();
    };
  }

  if (statement) {
    var words = Array.prototype.map.call(document.querySelectorAll("#words option"), function (option) { return option.value; });
    var complete = completion(document.getElementById("completions"), words);
    statement.addEventListener("keydown", function (event) {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        statement.form.submit();
      } else {
        complete(event);
      }
    });
  }
})();
