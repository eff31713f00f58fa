// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A click on a frame zooms to it, Escape back; '/' or Ctrl-F marks the frames whose name has a text.
(function () {
  "use strict";
  var svg = document.documentElement;
  var frames = Array.prototype.slice.call(document.querySelectorAll("g.frame"));
  var status = document.getElementById("status");
  var width = svg.viewBox.baseVal.width - 20;
  var zoomed = null;
  // Where pages about functions are; null in a file of its own.
  var functions = document.currentScript && document.currentScript.getAttribute("data-functions");
  var link = functions ? makeLink() : null;

  function element(name, attributes, parent) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    return parent.appendChild(made);
  }

  function makeLink() {
    var anchor = element("a", { target: "_top", "class": "link" }, svg);
    element("text", { "class": "page button", x: width + 10, y: 42, "text-anchor": "end" }, anchor);
    return anchor;
  }

  function showLink(frame) {
    if (!link) return;
    link.style.display = frame ? "" : "none";
    if (frame) {
      link.setAttribute("href", functions + "?q=" + encodeURIComponent(frame.data.name));
      link.firstChild.textContent = "callers and callees of " + label(frame.data, 400);
    }
  }

  frames.forEach(function (frame) {
    var rect = frame.querySelector("rect");
    frame.data = {
      rect: rect,
      text: frame.querySelector("text"),
      title: frame.querySelector("title").textContent,
      name: frame.getAttribute("data-name"),
      x: parseFloat(rect.getAttribute("x")) - 10,
      y: parseFloat(rect.getAttribute("y")),
      width: parseFloat(rect.getAttribute("width"))
    };
  });

  function label(data, room) {
    var characters = Math.floor((room - 6) / 7.23);
    return characters < 3 ? "" : data.name.length <= characters ? data.name : data.name.slice(0, characters - 2) + "..";
  }

  function show(from, room, y) {
    frames.forEach(function (frame) {
      var data = frame.data;
      var left = Math.max(data.x, from);
      var right = Math.min(data.x + data.width, from + room);
      var seen = right - left > 1e-6 * room;
      var x = 10 + ((left - from) / room) * width;
      var wide = ((right - left) / room) * width;
      frame.style.display = seen ? "" : "none";
      frame.style.opacity = seen && data.y > y ? "0.5" : "";
      if (!seen) return;
      data.rect.setAttribute("x", x);
      data.rect.setAttribute("width", Math.max(wide, 0.1));
      data.text.setAttribute("x", x + 3);
      data.text.textContent = label(data, wide);
    });
  }

  function zoom(frame) {
    zoomed = frame;
    showLink(frame);
    if (frame) show(frame.data.x, frame.data.width, frame.data.y);
    else show(0, width, Infinity);
  }

  function search() {
    var wanted = window.prompt("Mark frames whose name contains:", "");
    var marked = 0;
    if (wanted === null) return;
    frames.forEach(function (frame) {
      var found = wanted !== "" && frame.data.name.indexOf(wanted) >= 0;
      frame.classList.toggle("found", found);
      marked += found;
    });
    status.textContent = wanted === "" ? "" : marked + (marked === 1 ? " frame" : " frames") + " with '" + wanted + "'";
  }

  document.addEventListener("click", function (event) {
    var frame = event.target.closest("g.frame");
    if (frame) zoom(frame === zoomed ? null : frame);
    else if (event.target.id === "search") search();
    else if (event.target.id === "reset") zoom(null);
  });
  document.addEventListener("mouseover", function (event) {
    var frame = event.target.closest("g.frame");
    if (frame) status.textContent = frame.data.title;
  });
  document.addEventListener("keydown", function (event) {
    var frame = document.activeElement && document.activeElement.closest("g.frame");
    if (event.key === "Escape") zoom(null);
    else if (event.key === "Enter" && frame) zoom(frame === zoomed ? null : frame);
    else if (event.key === "/" || (event.key === "f" && event.ctrlKey)) {
      event.preventDefault();
      search();
    }
  });
})();
