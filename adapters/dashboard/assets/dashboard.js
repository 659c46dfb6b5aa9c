// What pages do with scripts. Without them they are the same pages, as they were when they were asked for.

const main = document.getElementById("main");

// The store's clock, as the page had it.
let offset = Date.parse(document.body.dataset.now) - Date.now();
let stopped = false;
// lost says that the server of this page gives no answer, and asOf is the time of the figures, by the store's clock.
let lost = false;
let asOf = Date.parse(document.body.dataset.asOf);
// The page as the server sent it last.
let held = null;
// rest is how long to leave the server alone, as it says.
let rest = Number(document.body.dataset.rest);
let last = Date.now();
let asking = null;

// Regions whose rows have changed while somebody was there, and what they are now.
const waiting = new Map();

// ago says how long ago a time is, as the server says it.
function ago(at) {
  const ms = Date.now() + offset - at;
  return ms < 0 ? "in " + span(-ms) : span(ms) + " ago";
}

function span(ms) {
  const s = Math.round(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return two(s, 60, "min", 1, "s");
  const m = Math.round(s / 60);
  if (m < 1440) return two(m, 60, "h", 1, "min");
  return two(Math.round(m / 60), 24, "d", 1, "h");
}

function two(n, large, largeUnit, small, smallUnit) {
  const rest = n % large;
  return Math.floor(n / large) + " " + largeUnit + (rest ? " " + rest + " " + smallUnit : "");
}

// local is how times are written that are not how long ago something was: UTC or local.
let local = kept() === "local";

// kept is what was chosen before, and keep keeps it, where the browser does.
function kept() {
  try { return localStorage.getItem("skein-times"); } catch { return null; }
}

function keep(choice) {
  try { localStorage.setItem("skein-times", choice); } catch { /* it holds for this page */ }
}

function full(iso) {
  if (!local) return iso.slice(0, 10) + " " + iso.slice(11, 19) + " UTC";
  const t = new Date(iso), two = (n) => String(n).padStart(2, "0");
  const name = new Intl.DateTimeFormat("en", {timeZoneName: "short"}).formatToParts(t).find((p) => p.type === "timeZoneName").value;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())} ${name}`;
}

// clocks writes all times as UTC or local.
function clocks() {
  const write = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  for (const t of document.querySelectorAll("time[data-full]")) write(t, full(t.dateTime));
  for (const t of document.querySelectorAll("[data-clock]")) write(t, full(t.dataset.clock).slice(11, 16));
  for (const t of document.querySelectorAll("time[data-hms]")) {
    const at = full(t.dateTime), today = full(new Date(Date.now() + offset).toISOString()).slice(0, 10);
    write(t, at.startsWith(today) ? at.slice(11, 19) : at.slice(0, 16));
    if (t.title !== at) t.title = at;
  }
  for (const e of document.querySelectorAll(".zone")) write(e, local ? "local time" : "UTC");
  for (const t of document.querySelectorAll(counted)) {
    const title = ("for" in t.dataset ? "since " : "") + full(t.dateTime);
    if (t.title !== title) t.title = title;
  }
}

// counted are the times that say how long ago something was, or in how long it will be.
const counted = "time[data-ago], time[data-for], time[data-soon]";

// tick counts times on between two answers.
function tick() {
  clocks();
  for (const t of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(t.dateTime));
    if (t.textContent !== text) t.textContent = text;
  }
  for (const t of document.querySelectorAll("time[data-soon]")) {
    const ms = Date.parse(t.dateTime) - Date.now() - offset, text = Math.round(ms / 1000) > 0 ? "in " + span(ms) : "now";
    if (t.textContent !== text) t.textContent = text;
  }
  for (const t of document.querySelectorAll("time[data-for]")) {
    const text = span(Math.max(0, Date.now() + offset - Date.parse(t.dateTime)));
    if (t.textContent !== text) t.textContent = text;
  }
  const age = document.getElementById("age");
  if (!age) return;
  const old = span(Math.max(0, Date.now() + offset - asOf)), stale = lost || "silent" in document.body.dataset;
  age.textContent = stopped ? "stopped" : old + (stale ? " old" : " ago");
  age.title = "the age of the figures";
  age.parentElement.classList.toggle("old", stale && !stopped);
  notice.hidden = !lost || stopped;
  notice.lastChild.textContent = "The server of this page does not answer. All figures are " + old + " old.";
  main.classList.toggle("stale", stale);
}

// notice is the banner of a server that gives no answer.
const notice = document.createElement("div");
notice.className = "banner";
notice.hidden = true;
notice.append(document.createElement("b"), document.createElement("p"));
notice.firstChild.className = "bad";
notice.firstChild.textContent = "▨ No answer";
notice.setAttribute("role", "alert");
main.before(notice);

// silence turns actions off and on again: those of a silent store would fail.
function silence(silent) {
  document.body.toggleAttribute("data-silent", silent);
  for (const form of document.querySelectorAll("form[method=post]")) form.inert = silent;
}

// banner is where a page says that the store is silent.
const banner = "[data-region=silence]";

// ask asks for the page again and puts what has changed into this one.
function ask() {
  if (stopped || document.hidden || asking || Date.now() - last < rest) return;
  last = Date.now();
  const r = asking = new XMLHttpRequest();
  r.open("GET", location.href);
  r.responseType = "document";
  r.timeout = 10000;
  r.setRequestHeader("If-None-Match", `W/"${held.body.dataset.tag}"`);
  r.setRequestHeader("Skein-Parts", held.querySelectorAll(parts).length);
  r.onloadend = () => {
    asking = null;
    // A page without a tag is somebody else's, such as that of a proxy whose session is over, or of a store that is silent.
    // Another answer is not read: browsers make a page with a style of an empty one.
    const page = [200, 503].includes(r.status) && r.response?.body;
    const live = r.status === 200 && page?.dataset?.tag, silent = r.status === 503 && "silent" in (page?.dataset ?? {});
    lost = !live && !silent && r.status !== 304;
    asOf = Date.parse(r.getResponseHeader("Skein-As-Of")) || asOf;
    if (live) {
      complete(r.response);
      held = r.response;
      offset = Date.parse(page.dataset.now) - Date.now();
      rest = Number(page.dataset.rest) || rest;
      take(r.response);
      silence("silent" in page.dataset);
    } else if (silent) {
      offset = Date.parse(page.dataset.now) - Date.now();
      replace(document.querySelector(banner), r.response.querySelector(banner));
      silence(true);
    } else if (r.status === 304 && "silent" in document.body.dataset && !("silent" in held.body.dataset)) {
      replace(document.querySelector(banner), held.querySelector(banner));
      silence(false);
    }
    tick();
  };
  r.send();
}

// parts are the elements that the server leaves out of an answer if they are as they were in the page held.
const parts = "[data-region], [data-region] :is([data-k], figure, rect, tr)";

// complete puts them from the page held into an answer, where an element names the first and the last by their numbers.
function complete(answer) {
  const had = held.querySelectorAll(parts);
  for (const gap of answer.querySelectorAll("[data-same]")) {
    const [first, last] = gap.dataset.same.split(" ");
    for (let n = had[first]; ; n = n.nextSibling) {
      gap.before(answer.importNode(n, true));
      if (n === had[last]) break;
    }
    gap.remove();
  }
}

// take puts each region of another document into its place here. Where rows or their order have changed it waits until nobody is there.
function take(other) {
  waiting.clear();
  if (document.title !== other.title) document.title = other.title;
  const icon = document.querySelector("link[rel=icon]"), fresh = other.querySelector("link[rel=icon]").getAttribute("href");
  if (icon.getAttribute("href") !== fresh) icon.setAttribute("href", fresh);
  const regions = new Map();
  for (const region of other.querySelectorAll("[data-region]")) regions.set(region.dataset.region, region);
  for (const region of document.querySelectorAll("[data-region]")) {
    const fresh = regions.get(region.dataset.region);
    if (!fresh) continue;
    if (alike(region, fresh)) update(region, fresh);
    else if (busy(region)) waiting.set(region, fresh);
    else replace(region, fresh);
  }
  document.getElementById("apply").hidden = waiting.size === 0;
  document.querySelectorAll("rect.at").forEach((r) => readChart(r.closest(".plot"), r));
}

function apply() {
  for (const [region, fresh] of waiting) replace(region, fresh);
  waiting.clear();
  document.getElementById("apply").hidden = true;
}

// busy says whether somebody points at a region, works in it or has marked a text of it.
function busy(region) {
  if (region.matches(":hover") || region.contains(document.activeElement) || region.querySelector("input:checked, details[open] textarea")) return true;
  const marked = getSelection();
  return !!marked && !marked.isCollapsed && region.contains(marked.anchorNode);
}

function replace(region, fresh) {
  const open = [...region.querySelectorAll("details")].map((d) => d.open);
  const marks = new Set([...region.querySelectorAll("input[name=id]:checked")].map((b) => b.value));
  region.replaceChildren(...[...fresh.childNodes].map((n) => document.importNode(n, true)));
  region.querySelectorAll("details").forEach((d, at) => { d.open = !!open[at]; });
  for (const b of region.querySelectorAll("input[name=id]")) b.checked = marks.delete(b.value);
  const form = region.closest("form.chosen");
  if (form) countMarks(form, marks.size);
}

// alike says whether two trees differ in texts and figures alone.
function alike(a, b) {
  if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName) return false;
  if (a.nodeType !== Node.ELEMENT_NODE) return true;
  if (a.dataset.k !== b.dataset.k || a.className.baseVal === undefined && a.tagName === "A" && a.getAttribute("href") !== b.getAttribute("href")) return false;
  const left = [...a.childNodes].filter((n) => !own(n)), right = [...b.childNodes];
  return left.length === right.length && left.every((n, at) => alike(n, right[at]));
}

// own says whether a node was put here by this script.
function own(n) {
  return n.nodeType === Node.ELEMENT_NODE && n.classList.contains("cursor");
}

const figures = ["class", "title", "inert", "datetime", "data-clock", "d", "x", "y", "aria-label", "max", "value", "width", "height"];

function update(a, b) {
  if (a.nodeType === Node.TEXT_NODE) {
    if (a.data !== b.data) {
      a.data = b.data;
      tint(a.parentElement);
    }
    return;
  }
  if (a.nodeType !== Node.ELEMENT_NODE || a.id === "strip" || a.matches(".reading") || a.matches("input, select, textarea, " + counted) && a.dateTime === b.dateTime) return;
  for (const name of a.matches("input, select, textarea") ? [] : figures) {
    const value = b.getAttribute(name);
    if (name === "class" && a.matches("rect.at")) continue; // which is read
    if (value === null) a.removeAttribute(name);
    else if (a.getAttribute(name) !== value) a.setAttribute(name, value);
  }
  if (a.matches(".zone, [data-clock], [data-full], [data-hms]")) return; // which tick writes
  const right = b.childNodes;
  [...a.childNodes].filter((n) => !own(n)).forEach((n, at) => update(n, right[at]));
}

function tint(e) {
  if (!e || !e.closest("td, dd")) return;
  e.classList.remove("changed");
  void e.getBoundingClientRect();
  e.classList.add("changed");
  setTimeout(() => e.classList.remove("changed"), 200);
}

function stop() {
  const b = document.getElementById("stop");
  if (!b) return;
  stopped = !stopped;
  b.setAttribute("aria-pressed", String(stopped));
  b.textContent = stopped ? "resume" : "stop";
  if (!stopped) ask();
  tick();
}

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select, textarea")) return;
  if (e.key === "/") {
    e.preventDefault();
    document.querySelector(".find input").focus();
  } else if (e.key === ".") {
    stop();
  } else if (e.key === "g") {
    location.href = "./";
  } else if (e.key === "?") {
    document.querySelector(".keys").scrollIntoView();
  }
});

// The map of shards: one line of figures for the shard that is pointed at or that arrow keys have gone to.
const map = { at: 0, rows: null, asked: 0 };

function cells(svg) {
  const d = svg.dataset;
  return { columns: +d.columns, pitch: +d.pitch, group: +d.group, n: Math.ceil(+d.shards / +d.group), bars: d.bars === "true" };
}

async function shardRows() {
  if (map.rows && Date.now() - map.asked < rest) return map.rows;
  map.asked = Date.now();
  const queue = new URLSearchParams(location.search).get("q");
  const answer = await fetch("api/v1/queues/" + encodeURIComponent(queue));
  if (answer.ok) map.rows = new Map((await answer.json()).shard_list.map((s) => [s.index, s]));
  return map.rows || new Map();
}

async function pointTo(svg, at) {
  const c = cells(svg);
  if (!(at >= 0 && at < c.n)) return;
  map.at = at;
  let cursor = svg.querySelector(".cursor");
  if (!cursor) {
    cursor = document.createElementNS(svg.namespaceURI, "path");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
  }
  const x = (at % c.columns) * c.pitch - 1, y = Math.floor(at / c.columns) * c.pitch - 1;
  cursor.setAttribute("d", c.bars ? `M${x} 0h18v98h-18z` : `M${x} ${y}h14v14h-14z`);
  const rows = await shardRows();
  if (map.at !== at) return;
  const lines = [];
  for (let n = at * c.group; n < (at + 1) * c.group; n++) {
    const s = rows.get(n);
    if (s) lines.push(s);
  }
  lines.sort((a, b) => b.lag - a.lag || b.length - a.length);
  const s = lines[0];
  document.getElementById("strip").textContent = s
    ? `${s.shard}: lag ${s.lag < 10 ? s.lag.toFixed(1) + " s" : span(s.lag * 1000)}, ${s.length} waiting, ${s.claimed - s.orphaned} running, ${s.morgue_length} dead, ` +
      (s.owner ? `lease ends ${ago(Date.parse(s.expires_at))}` : "no owner")
    : `shard ${at * c.group} can't be reached`;
}

function jobsOf(svg) {
  const queue = new URLSearchParams(location.search).get("q");
  location.href = "jobs?" + new URLSearchParams({ q: queue, shard: map.at * cells(svg).group });
}

function cellAt(svg, e) {
  const c = cells(svg), box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  const x = view.x + (e.clientX - box.left) / box.width * view.width, y = view.y + (e.clientY - box.top) / box.height * view.height;
  if (x < 0 || y < 0 || x >= c.columns * c.pitch) return -1;
  return Math.floor(x / c.pitch) + (c.bars ? 0 : Math.floor(y / c.pitch) * c.columns);
}

document.addEventListener("pointermove", (e) => {
  const svg = e.target.closest && e.target.closest("svg.shards");
  if (!svg) return;
  const at = cellAt(svg, e);
  if (at !== map.at || !svg.querySelector(".cursor")) pointTo(svg, at);
});

document.addEventListener("click", (e) => {
  const svg = e.target.closest("svg.shards");
  if (svg && cellAt(svg, e) === map.at) jobsOf(svg);
});

document.addEventListener("keydown", (e) => {
  const svg = e.target.closest("[data-region=map] .scroll")?.querySelector("svg.shards");
  if (!svg) return;
  const c = cells(svg);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -c.columns, ArrowDown: c.columns }[e.key];
  if (step) {
    e.preventDefault();
    pointTo(svg, svg.querySelector(".cursor") ? Math.min(c.n - 1, Math.max(0, map.at + step)) : 0);
  } else if (e.key === "Enter") {
    jobsOf(svg);
  }
});

// Charts: the figures of the step of time that is pointed at, or that arrow keys have gone to.
function readChart(plot, rect) {
  plot.querySelector("rect.at")?.classList.remove("at");
  rect?.classList.add("at");
  const line = plot.parentElement.querySelector(".reading");
  if (line) line.textContent = rect ? rect.textContent : "\u00a0";
}

document.addEventListener("pointerover", (e) => {
  const rect = e.target.closest && e.target.closest(".area rect");
  if (rect) readChart(rect.closest(".plot"), rect);
});

document.addEventListener("focusin", (e) => {
  if (e.target.matches(".plot")) readChart(e.target, e.target.querySelector("rect.at") || e.target.querySelector("rect:last-of-type"));
});

document.addEventListener("keydown", (e) => {
  if (!e.target.matches?.(".plot")) return;
  const rects = [...e.target.querySelectorAll("rect")], at = rects.findIndex((r) => r.matches(".at"));
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: rects.length - 1 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  if (rects[to]) readChart(e.target, rects[to]);
});

// What was done is said once: not again when the page is loaded anew or its address is given on.
const here = new URL(location.href);
if (here.searchParams.has("did")) {
  here.searchParams.delete("did");
  here.searchParams.delete("n");
  history.replaceState(null, "", here);
}

// Lists behind a word are left by Escape, and by a click elsewhere.
const lists = document.querySelectorAll(".top details, .sub details");
for (const list of lists) {
  list.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    list.open = false;
    list.querySelector("summary").focus();
  });
}
document.addEventListener("click", (e) => {
  for (const list of lists) if (!list.contains(e.target)) list.open = false;
});

// What a payload is shown as can be copied, and times may be written as local ones.
document.addEventListener("click", (e) => {
  if (e.target.matches(".copy")) {
    getSelection().selectAllChildren(e.target.closest("details").querySelector("pre"));
    e.target.textContent = document.execCommand("copy") ? "Copied" : "Marked";
  } else if (e.target.closest("#zone")) {
    local = !local;
    keep(local ? "local" : "UTC");
    tick();
  }
});

// Marked rows: how many, and all at once. Marks whose rows a live update has removed are lost, and
// the count says so until the next change.
function countMarks(form, lost = 0) {
  const boxes = [...form.querySelectorAll("input[name=id]")], n = boxes.filter((b) => b.checked).length;
  form.querySelector(".count").textContent = n + " marked" + (lost ? ", " + lost + " no longer listed" : "");
  const all = form.querySelector("input.all");
  if (!all) return;
  all.checked = n > 0 && n === boxes.length;
  all.indeterminate = n > 0 && n < boxes.length;
}

document.addEventListener("change", (e) => {
  const form = e.target.closest("form.chosen");
  if (!form || e.target.type !== "checkbox") return;
  if (e.target.classList.contains("all")) form.querySelectorAll("input[name=id]").forEach((b) => { b.checked = e.target.checked; });
  countMarks(form);
});

// A browser that goes back to a page has its marks still.
addEventListener("pageshow", () => document.querySelectorAll("form.chosen").forEach((form) => countMarks(form)));

// An action on all that match goes on by itself until it is stopped.
const going = document.querySelector("form[data-auto]");
if (going) {
  let on = true;
  const b = document.getElementById("halt");
  b.hidden = false;
  b.addEventListener("click", () => {
    on = !on;
    b.textContent = on ? "Stop" : "Stopped: go on by the button";
    b.disabled = !on;
  });
  setTimeout(() => { if (on) going.requestSubmit(); }, 700);
}

if ("live" in document.body.dataset) {
  held = document.cloneNode(true);
  document.querySelector(".live").hidden = false;
  document.getElementById("stop").addEventListener("click", stop);
  document.getElementById("apply").addEventListener("click", apply);
  document.addEventListener("visibilitychange", ask);
  setInterval(ask, 500);
}
setInterval(tick, 1000);
tick();

// A name that is cut is in two pieces, between which a copy would have a line break.
document.addEventListener("copy", (e) => {
  const selection = getSelection(), names = [...document.querySelectorAll(".nm")].filter((nm) => selection.containsNode(nm, true));
  if (!names.length || !e.clipboardData) return;
  let text = selection.toString();
  for (const nm of names) text = text.replace([...nm.children].map((part) => part.textContent).join("\n"), nm.textContent);
  e.clipboardData.setData("text/plain", text);
  e.preventDefault();
});
