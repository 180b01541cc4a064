"use strict";
// The page has no state of its own but the place in the address, and the last activity.
const main = document.getElementById("main");
let latest = null, points = [], turn = 0;

// h makes an element. Texts are never HTML.
function h(tag, props, ...inner) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v);
  }
  e.append(...inner.flat(Infinity).filter(x => x !== null && x !== undefined && x !== false && x !== ""));
  return e;
}
function s(tag, props, ...inner) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(props || {})) e.setAttribute(k, v);
  e.append(...inner);
  return e;
}
const number = v => v === null || v === undefined ? "–" : v >= 1000 ? Math.round(v).toLocaleString("en") : v >= 10 || v === Math.round(v) ? String(Math.round(v)) : v.toFixed(v < 0.1 ? 2 : 1);
function seconds(v) {
  if (v === null || v === undefined) return "–";
  if (v === 0) return "0";
  if (v < 0.001) return (v * 1e6).toFixed(0) + " µs";
  if (v < 1) return (v * 1e3).toFixed(v < 0.01 ? 1 : 0) + " ms";
  if (v < 120) return v.toFixed(1) + " s";
  return v < 7200 ? (v / 60).toFixed(0) + " min" : (v / 3600).toFixed(1) + " h";
}
const clock = t => new Date(t).toLocaleTimeString("en-GB", { hour12: false });
const moment = t => { const d = new Date(t), today = new Date().toDateString() === d.toDateString(); return today ? clock(t) : d.toLocaleDateString("en-CA") + " " + clock(t) };

// plot draws up to two lines over time.
function plot(title, show, ...lines) {
  const xs = points.map(p => Date.parse(p.at)), W = 300, H = 80;
  const top = Math.max(1e-9, ...lines.flatMap(l => points.map(p => p[l.key] ?? 0)));
  const span = Math.max(60000, xs.length ? xs[xs.length - 1] - xs[0] : 0), from = xs.length ? xs[xs.length - 1] - span : 0;
  const x = i => (xs[i] - from) / span * W, y = v => H - 2 - v / (top * 1.08) * (H - 4);
  const picture = s("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
  for (const part of [0, 0.5, 1]) picture.append(s("line", { class: "grid", x1: 0, x2: W, y1: 1 + part * (H - 2), y2: 1 + part * (H - 2) }));
  lines.forEach((l, n) => {
    let d = "", first = null, last = 0, pen = false;
    points.forEach((p, i) => {
      const v = p[l.key];
      if (v === null || v === undefined) { pen = false; return }
      d += `${pen ? "L" : "M"}${x(i).toFixed(1)},${y(v).toFixed(1)}`;
      pen = true; last = x(i); if (first === null) first = x(i);
    });
    if (!d) return;
    if (n === 0 && d.lastIndexOf("M") === 0) picture.append(s("path", { class: "f1", d: `${d}L${last.toFixed(1)},${H}L${first.toFixed(1)},${H}Z` }));
    picture.append(s("path", { class: "l" + (n + 1), d }));
  });
  const now = points.length ? points[points.length - 1] : {};
  const legend = lines.length > 1 ? h("span", { class: "legend" }, lines.map((l, n) => [n ? " · " : "", h("b", { class: "k" + (n + 1) }, l.name)])) : null;
  return h("div", { class: "card" }, h("h3", {}, title, legend),
    h("div", { class: "big" }, lines.map((l, n) => [n ? h("span", { class: "soft" }, " · ") : "", h("span", { class: lines.length > 1 ? "k" + (n + 1) : null }, show(now[l.key]))])), picture,
    h("div", { class: "axis" }, h("span", {}, xs.length ? clock(from) : "no data yet"), h("span", {}, "max " + show(top > 1e-9 ? top : 0)), h("span", {}, xs.length ? clock(xs[xs.length - 1]) : "")));
}
function table(heads, rows, none) {
  if (!rows.length) return h("p", { class: "soft" }, none || "There is none.");
  const cell = (tag, head, v) => h(tag, { class: head.startsWith("#") ? "n" : head.startsWith("~") ? "wide" : null }, v);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map(t => cell("th", t, t.replace(/^[#~]/, ""))))),
    h("tbody", {}, rows.map(r => h("tr", {}, r.map((v, i) => cell("td", heads[i], v)))))));
}
const link = o => "#/object/" + [o.resource, o.namespace || "_", o.name].map(encodeURIComponent).join("/");
const tint = v => v > 0 ? h("span", { class: "bad" }, number(v)) : number(v);

function overview() {
  const a = latest.activity;
  return [
    latest.about.idle && h("div", { class: "note" }, latest.about.idle),
    (latest.about.problems || []).map(p => h("div", { class: "note failed" }, p)),
    h("div", { class: "cards" },
      plot("Events per second", number, { key: "events" }),
      plot("Calls per second", number, { key: "calls", name: "calls" }, { key: "failures", name: "errors" }),
      plot("Duration of calls", seconds, { key: "median", name: "median" }, { key: "p95", name: "95 %" }),
      plot("Queue: objects", number, { key: "queued", name: "queued" }, { key: "retries", name: "retries" }),
      plot("Queue: oldest event", seconds, { key: "oldest" }),
      plot("Requests per second", number, { key: "requests" })),
    h("h2", {}, "Resources"),
    table(["Resource", "Watches", "#Events/s", "#Queued", "#Oldest", "#Retries", "#Paused", "#Daemons", "#Timers"], a.resources.map(r => [
      h("a", { href: "#/objects?resource=" + encodeURIComponent(r.name) }, r.name),
      r.failing > 0 ? h("span", { class: "bad" }, number(r.failing) + " failing") : r.listing > 0 ? h("span", { class: "wait" }, "listing") : h("span", { class: "good" }, number(r.watching) + " watching"),
      number(r.events), number(r.queued), seconds(r.oldest), number(r.retries), number(r.paused), number(r.daemons), number(r.timers)]), "No resource is served."),
  ];
}
function handlers() {
  return [h("h1", {}, "Handlers"), h("p", { class: "soft" }, "The slowest first. Durations are of all calls since the start of the process."),
    table(["Handler", "Resource", "#Calls/s", "#Calls", "#Errors", "#Mean", "#Median", "#95 %"], latest.activity.handlers.map(x =>
      [h("span", { class: "mono" }, x.id), x.resource, number(x.rate), number(x.calls), tint(x.failed), seconds(x.mean), seconds(x.median), seconds(x.p95)]), "No handler was called yet.")];
}
function requests() {
  const a = latest.activity;
  return [h("h1", {}, "Requests to the Kubernetes API"),
    h("p", { class: "soft" }, `${number(a.inFlight)} in flight, ${number(a.waiting)} waiting, limit ${number(a.limit)}`),
    table(["Verb", "#Per second", "#Total", "#Median", "#95 %", "#Conflicts", "#Throttled", "#No response"], a.requests.map(r =>
      [r.verb, number(r.rate), number(r.total), seconds(r.median), seconds(r.p95), tint(r.conflicts), tint(r.throttled), tint(r.noResponse)]))];
}

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

// objects shows one page of objects. Only that page is in the browser.
async function objects(query) {
  const l = await get("objects?" + query), old = document.getElementById("search");
  const go = changes => {
    const next = new URLSearchParams(query);
    next.delete("after");
    for (const [k, v] of Object.entries(changes)) v ? next.set(k, v) : next.delete(k);
    location.hash = "#/objects?" + next;
  };
  const select = (key, values, labels) => h("select", { "aria-label": key, onchange: e => go({ [key]: e.target.value }) },
    values.map((v, i) => h("option", { value: v, selected: v === (key === "resource" ? l.resource : query.get(key) || "") ? "" : null }, labels ? labels[i] : v)));
  let timer;
  const search = h("input", { id: "search", type: "search", placeholder: "a part of a name or namespace, or NAMESPACE/NAME", value: query.get("q") || "", "aria-label": "search",
    oninput: e => { clearTimeout(timer); timer = setTimeout(() => go({ q: e.target.value }), 200) } });
  const more = new URLSearchParams(query);
  if (l.next) more.set("after", l.next);
  const colors = { running: "good", retrying: "wait", paused: "soft" };
  return { focus: old && old === document.activeElement ? search : null, nodes: [
    h("div", { class: "tools" }, select("resource", latest ? latest.about.resources : [l.resource]), select("state", ["", "running", "retrying", "paused"], ["all states", "running", "retrying", "paused"]), search),
    h("p", { class: "soft", id: "total" }, `${l.total.toLocaleString("en")} object${l.total === 1 ? "" : "s"}`),
    table(["Namespace", "~Name", "State"], l.objects.map(o => [o.namespace || "–", h("a", { href: link({ resource: l.resource, ...o }) }, o.name),
      (o.states || []).map(x => h("span", { class: "tag " + colors[x] }, x))]), "No object matches."),
    h("div", { class: "tools" }, query.get("after") && h("a", { href: "#/objects?" + (() => { const q = new URLSearchParams(query); q.delete("after"); return q })() }, "first page"),
      l.next && h("a", { id: "next", href: "#/objects?" + more }, "next page →"))] };
}

const phaseColor = { succeeded: "good", failed: "bad", exhausted: "bad", delayed: "wait", due: "wait", running: "good" };
function handlerRows(list, depth) {
  return list.flatMap(x => [[
    h("span", { class: "mono" }, (depth ? "└ " : "") + x.id), h("span", { class: phaseColor[x.phase] || "soft" }, x.phase),
    [x.why, x.message].filter(Boolean).join(" · "), x.attempts || "", x.due ? moment(x.due) : x.finished ? moment(x.finished) : "", x.family], ...handlerRows(x.subs || [], depth + 1)]);
}
function tree(children, root) {
  const color = { ready: "good", "in progress": "wait", failed: "bad" };
  return h("ul", { class: "tree" + (root ? " root" : "") }, children.map(c => h("li", {},
    c.kind + " ", c.resource ? h("a", { href: link(c) }, c.name) : h("b", {}, c.name), " ",
    h("span", { class: color[c.state] || "soft" }, c.state + (c.message ? ": " + c.message : "")),
    c.children && tree(c.children, false))));
}
// lane draws the timeline: turns, calls, writes and events below each other.
function lane(steps) {
  const rows = ["turn", "call", "write", "event"], from = Date.parse(steps[0].at);
  const to = Math.max(from + 1, ...steps.map(x => Date.parse(x.at) + x.took * 1000)), W = 1000;
  return s("svg", { class: "lane", viewBox: `0 0 ${W} 60`, preserveAspectRatio: "none", role: "img", "aria-label": "timeline" }, ...steps.map(x => {
    const at = (Date.parse(x.at) - from) / (to - from) * (W - 14) + 4, wide = Math.max(4, x.took * 1000 / (to - from) * (W - 14));
    const bad = x.outcome === "failed" || x.outcome === "retried";
    return s("rect", { class: bad ? "err" : x.step, x: at.toFixed(1), width: wide.toFixed(1), y: 5 + 13 * rows.indexOf(x.step), height: 10, rx: 2 });
  }));
}
const json = v => v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v);

async function object(path) {
  const o = await get("objects/" + path), r = o.report, resource = decodeURIComponent(path.split("/")[0]);
  const steps = o.timeline, shown = steps.slice(-200).reverse();
  return { nodes: [
    h("p", { class: "soft" }, h("a", { href: "#/objects?resource=" + encodeURIComponent(resource) }, resource), r.object.namespace ? " / " + r.object.namespace : ""),
    h("h1", {}, r.object.kind + " " + r.object.name),
    h("p", { id: "summary" }, r.summary),
    r.pause && h("div", { class: "note" }, "Paused by " + r.pause.annotation + (r.pause.until ? " until " + moment(r.pause.until) : "") + (r.pause.reason ? ": " + r.pause.reason : "") + (r.pause.problem ? " (" + r.pause.problem + ")" : "")),
    (r.notes || []).map(n => h("div", { class: "note" }, n)),
    h("h2", {}, "Handlers"),
    table(["Handler", "Phase", "~Why", "#Attempts", "When", "Family"], handlerRows(r.handlers || [], 0)),
    h("h2", {}, "Changes since it was last handled"),
    table(["Change", "~Path", "~Old", "~New"], (r.changes || []).map(c => [c.op, h("span", { class: "mono" }, c.path), h("span", { class: "mono" }, json(c.old)), h("span", { class: "mono" }, json(c.new))]),
      r.object.handled ? "There are none." : "It was not handled before."),
    h("h2", {}, "Timeline"),
    steps.length ? lane(steps) : null,
    table(["Time", "Step", "~What", "Outcome", "#Took"], shown.map(x => [moment(x.at), x.step, [x.handler && h("span", { class: "mono" }, x.handler), x.handler && x.text ? " · " : "", x.text],
      h("span", { class: phaseColor[x.outcome] || (x.outcome === "retried" ? "bad" : "soft") }, x.outcome || ""), x.step === "event" ? "" : seconds(x.took)]),
      "Nothing is in the history of this process. It keeps the latest steps of all objects."),
    h("h2", {}, "Children"),
    o.children.length ? tree(o.children, true) : h("p", { class: "soft" }, "There are none."),
    h("h2", {}, "Deletion"),
    h("p", {}, r.deletion.requires && r.deletion.requires.length ? "It waits for " + r.deletion.requires.join(", ") + ". " : "No handler of this operator delays it. ",
      (r.deletion.others || []).length ? "Other finalizers: " + r.deletion.others.join(", ") + "." : ""),
    h("p", { class: "soft mono" }, `uid ${r.object.uid} · version ${r.object.resourceVersion}`)] };
}

// show draws the place in the address. An older answer never replaces a newer one.
async function show(again) {
  const mine = ++turn, [path, query] = (location.hash.replace(/^#\/?/, "")).split("?");
  const place = path.split("/")[0];
  for (const a of document.querySelectorAll("#nav a")) a.classList.toggle("here", a.getAttribute("href") === "#/" + (place === "object" ? "objects" : place));
  try {
    let view;
    if (place === "objects") view = await objects(new URLSearchParams(query || ""));
    else if (place === "object") view = await object(path.slice("object/".length));
    else if (!latest) return;
    else view = { nodes: place === "handlers" ? handlers() : place === "requests" ? requests() : overview() };
    if (mine !== turn) return;
    const y = window.scrollY;
    main.replaceChildren(...view.nodes.flat().filter(Boolean));
    if (view.focus) { view.focus.focus(); view.focus.setSelectionRange(view.focus.value.length, view.focus.value.length) }
    window.scrollTo(0, again ? y : 0);
    main.dataset.ready = place || "overview";
  } catch (e) {
    if (mine === turn) main.replaceChildren(h("div", { class: "note failed" }, e.message));
  }
}
function received(top) {
  const first = !latest;
  latest = top;
  points = first || top.points.length > 1 ? top.points : points.concat(top.points).slice(-240);
  const state = top.about.idle && top.activity.state === "working" ? "idle" : top.activity.state;
  document.getElementById("name").textContent = document.title = top.about.name || "operator";
  document.getElementById("state").textContent = `${state} · ${number(top.activity.running)} calls running · Gopf ${top.about.version}`;
  document.getElementById("dot").className = "dot " + state.replace(" ", "-");
  const place = location.hash.replace(/^#\/?/, "").split(/[/?]/)[0];
  if (place === "" || place === "handlers" || place === "requests" || place === "objects" && first) show(true);
}
function connect() {
  const stream = new EventSource("stream");
  let lost = 0;
  stream.onmessage = e => { clearTimeout(lost); lost = 0; received(JSON.parse(e.data)); };
  stream.onerror = () => {
    // The operator ends a stream every two minutes. The browser connects again at once.
    lost ||= setTimeout(() => {
      document.getElementById("dot").className = "dot lost";
      document.getElementById("state").textContent = "not connected";
    }, 2000);
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
addEventListener("hashchange", () => show(false));
show(false);
connect();
