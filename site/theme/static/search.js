// The search of the manual. It has no dependencies and needs no network: the index is a script.
// gopfSearch(index, query, limit) returns the best entries, at most one per page first.
"use strict";

// Words that carry no meaning in a question.
var gopfStop = new Set(("a an and are as at be by can could do does for from get has have how i if in into is it its me my no not of on or our so some that " +
  "the their them then there these this to use using via was we what when where which who why will with would you your").split(" "));

// Other words of users for the words of the manual.
var gopfSynonyms = {
  crd: "definition", crds: "definition", validate: "admission", validation: "admission", validating: "admission", mutate: "admission", mutating: "admission",
  defaulting: "admission", cron: "timer", schedule: "timer", periodic: "timer", periodically: "timer", hourly: "timer", poll: "timer", polling: "timer",
  leader: "election", lease: "election", ha: "election", replicas: "election", replica: "election", failover: "election",
  mock: "test", unit: "test", fake: "test", envtest: "test", argocd: "gitops", argo: "gitops", flux: "gitops",
  rbac: "permission", roles: "permission", role: "permission", clusterrole: "permission", helm: "manifests", chart: "manifests", yaml: "manifests",
  docker: "image", dockerfile: "image", owner: "hierarchy", ownerreference: "hierarchy", child: "child", children: "child", subresource: "child",
  python: "kopf", kubebuilder: "controller-runtime", reconciler: "controller-runtime", prometheus: "metric", grafana: "metric", memory: "memory",
  login: "authentication", credentials: "authentication", token: "authentication", kubeconfig: "authentication", backoff: "retry", retries: "retry",
  crash: "continuity", kill: "continuity", killed: "continuity", restart: "continuity", liveness: "health", readiness: "health", probe: "health", probes: "health",
  install: "installation", setup: "installation", slow: "performance", fast: "performance", speed: "performance", benchmark: "benchmarks",
  tenant: "tenancy", tenants: "tenancy", multitenant: "tenancy", stuck: "deleted", lookup: "index", cache: "index", background: "daemon", thread: "daemon", goroutine: "daemon",
  informer: "index", profile: "debug", pprof: "debug", delve: "debugging", dlv: "debugging", breakpoint: "debugging", debugger: "debugging", downgrade: "upgrade", rollback: "upgrade",
  idempotent: "idempotence", twice: "idempotence", should: "why", logging: "log", faq: "question", annotation: "annotation", gdpr: "trust", forge: "trust", forged: "trust"
};

// gopfStem cuts endings of English words, so that "retries" finds "retry".
function gopfStem(word) {
  if (word.length > 4 && word.endsWith("ies")) return word.slice(0, -3) + "y";
  if (word.length > 6 && word.endsWith("ation")) return word.slice(0, -5).replace(/i$/, "");
  if (word.length > 5 && word.endsWith("ing")) word = word.slice(0, -3);
  else if (word.length > 4 && word.endsWith("ed")) word = word.slice(0, -2);
  else if (word.length > 4 && word.endsWith("es") && /(s|x|ch|sh)es$/.test(word)) word = word.slice(0, -2);
  else if (word.length > 3 && word.endsWith("s") && !word.endsWith("ss")) word = word.slice(0, -1);
  if (word.length > 4 && word.endsWith("e")) word = word.slice(0, -1);
  if (word.length > 4 && /([bdglmnprt])\1$/.test(word)) word = word.slice(0, -1);
  return word;
}

// gopfWords splits a text: CamelCase names count as a whole and by their parts.
function gopfWords(text) {
  var words = [];
  (text.match(/[A-Za-z0-9][A-Za-z0-9_]*(?:-[A-Za-z0-9]+)*/g) || []).forEach(function (word) {
    var lower = word.toLowerCase();
    words.push(gopfStem(lower));
    if (lower.indexOf("-") > 0) lower.split("-").forEach(function (part) { words.push(gopfStem(part)) });
    var parts = word.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) || [];
    if (parts.length > 1) parts.forEach(function (part) { words.push(gopfStem(part.toLowerCase())) });
  });
  return words;
}

// gopfCounts returns how often each word occurs.
function gopfCounts(words) {
  var counts = new Map();
  words.forEach(function (w) { counts.set(w, (counts.get(w) || 0) + 1) });
  return counts;
}

// gopfPrepare counts the words of all entries, once.
function gopfPrepare(index) {
  if (index.prepared) return index.prepared;
  var entries = [], frequency = new Map(), pages = new Map(), total = 0;
  index.forEach(function (e) {
    var text = gopfWords(e.x);
    var entry = { source: e, text: gopfCounts(text), title: gopfCounts(gopfWords(e.t + " " + e.p)), heading: gopfCounts(gopfWords(e.h || e.d || "")), length: text.length };
    total += text.length;
    entries.push(entry);
    var all = new Set(Array.from(entry.text.keys()).concat(Array.from(entry.title.keys()), Array.from(entry.heading.keys())));
    all.forEach(function (w) { frequency.set(w, (frequency.get(w) || 0) + 1) });
    if (!pages.has(e.p)) pages.set(e.p, []);
    pages.get(e.p).push(entry);
  });
  index.prepared = { entries: entries, frequency: frequency, average: total / Math.max(1, entries.length), pages: pages };
  return index.prepared;
}

function gopfTerms(query) {
  var terms = new Map();
  var raw = query.match(/[A-Za-z0-9][A-Za-z0-9_]*(?:-[A-Za-z0-9]+)*/g) || [];
  var all = raw.filter(function (w) { return !gopfStop.has(w.toLowerCase()) });
  if (all.length === 0) all = raw;
  all.forEach(function (w) {
    gopfWords(w).forEach(function (stem) { terms.set(stem, 1) });
    var synonym = gopfSynonyms[w.toLowerCase()];
    if (synonym) gopfWords(synonym).forEach(function (stem) { terms.set(stem, Math.max(terms.get(stem) || 0, 0.9)) });
  });
  return terms;
}

// gopfComplete replaces terms that no page has by the words that begin with them, which finds
// words while they are typed.
function gopfComplete(terms, frequency) {
  var complete = new Map();
  terms.forEach(function (weight, term) {
    if (frequency.has(term)) return complete.set(term, weight);
    var longer = [];
    if (term.length > 2) frequency.forEach(function (n, w) { if (w.startsWith(term)) longer.push(w) });
    longer.sort(function (a, b) { return frequency.get(b) - frequency.get(a) }).slice(0, 5).forEach(function (w) { complete.set(w, 0.4 * weight) });
  });
  return complete;
}

function gopfSearch(index, query, limit) {
  var data = gopfPrepare(index), terms = gopfComplete(gopfTerms(query), data.frequency), scores = [];
  var count = data.entries.length;
  data.entries.forEach(function (e) {
    var score = 0, found = 0;
    terms.forEach(function (weight, term) {
      var inText = e.text.get(term) || 0, inTitle = e.title.has(term), inHeading = e.heading.has(term);
      if (!inText && !inTitle && !inHeading) return;
      found++;
      var rare = Math.log(1 + (count - (data.frequency.get(term) || 0) + 0.5) / ((data.frequency.get(term) || 0) + 0.5));
      var saturated = inText * 2.2 / (inText + 1.2 * (0.25 + 0.75 * e.length / data.average));
      score += weight * rare * (saturated + (inTitle ? 2.4 + 0.4 / e.title.size : 0) + (inHeading ? 1.2 + 0.5 / e.heading.size : 0));
    });
    if (!score) return;
    score *= 0.4 + 0.6 * found / terms.size;
    if (e.source.p.startsWith("api-")) score *= 0.45; // the manual first
    if (e.source.p === "differences" || e.source.p === "checklist" || e.source.p === "renamed" || e.source.p === "architecture" || e.source.p === "contributing") score *= 0.6;
    if (!e.source.h) score *= 1.15; // the beginning of a page
    scores.push({ entry: e.source, score: score });
  });
  // A page with several good sections is better than one with a single good section.
  var best = new Map();
  scores.sort(function (a, b) { return b.score - a.score });
  scores.forEach(function (s) {
    var page = best.get(s.entry.p);
    if (!page) best.set(s.entry.p, { entry: s.entry, score: s.score, more: 0 });
    else if (page.more < 3) { page.score += 0.18 * s.score; page.more++ }
  });
  var pages = Array.from(best.values()).sort(function (a, b) { return b.score - a.score });
  return pages.slice(0, limit || 8).map(function (p) { return p.entry });
}
