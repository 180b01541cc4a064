"use strict";
(function () {
  var $ = function (id) { return document.getElementById(id) };

  // The theme: that of the system, until the reader chooses one.
  $("theme").addEventListener("click", function () {
    var now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    var next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("gopf-theme", next) } catch (e) { /* private windows have no storage */ }
  });

  $("menu").addEventListener("click", function () {
    var open = $("nav").classList.toggle("open");
    $("menu").setAttribute("aria-expanded", String(open));
  });

  // Copy buttons.
  document.querySelectorAll("article pre").forEach(function (pre) {
    var frame = document.createElement("div"), button = document.createElement("button");
    frame.className = "code";
    pre.parentNode.insertBefore(frame, pre);
    frame.appendChild(pre);
    pre.tabIndex = 0;
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      var done = function () { button.textContent = "Copied"; setTimeout(function () { button.textContent = "Copy" }, 1500) };
      if (navigator.clipboard) return navigator.clipboard.writeText(pre.innerText).then(done, function () { button.textContent = "Failed" });
      var range = document.createRange();
      range.selectNodeContents(pre);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
      done();
    });
    frame.appendChild(button);
  });

  // Versions: folders next to this one.
  var here = location.pathname.split("/"), page = here.pop() || "index.html", current = here.pop();
  if (typeof gopfVersions !== "undefined" && gopfVersions.length) {
    var select = $("versions");
    select.textContent = "";
    gopfVersions.forEach(function (v) { select.add(new Option(v, v, v === current, v === current)) });
    select.addEventListener("change", function () { location.href = "../" + select.value + "/" + page });
  }

  // The search. Its index is loaded when the reader first uses it.
  var query = $("query"), found = $("found"), loading = false, chosen = -1;
  function load() {
    if (loading) return;
    loading = true;
    var script = document.createElement("script");
    script.src = "search-index.js";
    script.onload = show;
    document.head.appendChild(script);
  }
  function show() {
    if (typeof gopfIndex === "undefined") return;
    chosen = -1;
    var text = query.value.trim();
    found.hidden = text === "";
    found.textContent = "";
    var results = text ? gopfSearch(gopfIndex, text, 8) : [];
    results.forEach(function (r) {
      var item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
      link.href = r.p + ".html" + (r.a ? "#" + r.a : "");
      link.textContent = r.t + (r.h ? " › " + r.h : "");
      small.textContent = r.x.slice(0, 120);
      link.appendChild(small);
      item.appendChild(link);
      found.appendChild(item);
    });
    if (text && !results.length) {
      var none = document.createElement("li");
      none.textContent = "Nothing found.";
      found.appendChild(none);
    }
  }
  query.addEventListener("focus", load);
  query.addEventListener("input", function () { load(); show() });
  $("search").addEventListener("submit", function (e) {
    e.preventDefault();
    var link = found.querySelectorAll("a")[Math.max(0, chosen)];
    if (link) location.href = link.href;
  });
  query.addEventListener("keydown", function (e) {
    var items = found.querySelectorAll("li");
    if (e.key === "Escape") { found.hidden = true; query.blur() }
    if (!items.length || (e.key !== "ArrowDown" && e.key !== "ArrowUp")) return;
    e.preventDefault();
    chosen = (chosen + (e.key === "ArrowDown" ? 1 : items.length - 1)) % items.length;
    items.forEach(function (item, i) { item.classList.toggle("chosen", i === chosen) });
  });
  document.addEventListener("keydown", function (e) {
    if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { e.preventDefault(); query.focus() }
  });
  document.addEventListener("click", function (e) { if (!$("search").contains(e.target)) found.hidden = true });
})();
