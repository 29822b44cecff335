// Draws what the gateway tells, several times a second at most. All of it follows from what was released.
"use strict";

const $ = (id) => document.getElementById(id);
const hash = new URLSearchParams(location.hash.slice(1));
const token = hash.get("token") || "";
let chosen = hash.get("subject") || "";
let stream, state, connected = false, refused = false;

// Rounding must not look like nothing, or like certainty.
const percent = (share) => (share > 0 && share < 0.005 ? "<1 %" : share >= 0.995 && share < 1 ? ">99 %" : `${Math.round(100 * share)} %`);
const SILENT = "nothing left to say";
const number = (count) => count.toLocaleString("en");
const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString([], { hour12: false });

function text(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes, words) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (words !== undefined) element.textContent = words;
  return element;
}

function listen() {
  if (stream) stream.close();
  const query = new URLSearchParams({ subject: chosen, token });
  stream = new EventSource(`events?${query}`);
  stream.onmessage = (event) => {
    connected = true;
    refused = false;
    state = JSON.parse(event.data);
    const known = state.subjects.map((line) => line.name);
    if (!chosen && known.length) return choose(known[0]);
    show();
  };
  stream.onerror = () => {
    connected = false;
    // A browser tries again by itself, unless the answer was a refusal.
    refused = stream.readyState === EventSource.CLOSED;
    showStatus();
  };
}

function choose(name) {
  chosen = name;
  listen();
  show();
  const row = [...$("subjects").children].find((each) => each.firstChild.dataset.name === name);
  if (row) row.scrollIntoView({ block: "nearest", inline: "center" });
}

async function tell(what) {
  for (let tries = 1; tries <= 3; tries += 1) {
    if (await told(what)) return;
  }
  connected = false;
  showStatus();
}

async function told(what) {
  const headers = { "X-Reticent": "page", "X-Reticent-Token": token };
  try {
    const answer = await fetch(what, { method: "POST", headers });
    if (answer.ok && what === "stop") state.stopped = true;
    return answer.ok;
  } catch (error) {
    return false;
  }
}

function show() {
  showStatus();
  showSubjects();
  showCounts();
  text($("assumption"), state.assumption);
  text($("promise"), state.promise);
  // Somebody else was just chosen, and the picture is still of the one before.
  if (state.asked !== chosen && chosen) return;
  const subject = state.chosen;
  $("empty").hidden = Boolean(subject);
  $("shown").hidden = !subject;
  if (!subject) {
    text($("empty"), absence());
    return;
  }
  showSent(subject);
  showUseful(subject);
  showChart(subject);
  showLeft(subject);
  showLog(subject);
}

function absence() {
  if (!chosen) return "Nobody has been heard yet. As soon as a sensor speaks, it shows here.";
  if (state.trouble) return `${chosen} is not shown: readings are dropped unread while nothing is released. It shows once its readings are handled.`;
  return `${chosen} is not in memory. Of the ${number(state.most_in_memory)} subjects that were heard last the gateway remembers where they stand, of the others the ledger does.`;
}

function showStatus() {
  const stopped = Boolean(state && state.stopped);
  const lost = stopped ? "The gateway was stopped. Start it again with reticent serve; this page then reconnects by itself."
    : refused ? "The gateway refused this page: its token is missing or wrong, or too many wrong ones came from here. Open the address that was printed at the start; if you did, wait a minute."
    : "No connection to the gateway. It has ended, or it is out of reach; this page tries again by itself.";
  const trouble = connected ? state.trouble : lost;
  const held = connected && state.paused && !stopped;
  const silent = connected && state.subjects.length > 0 && state.subjects.every((line) => line.state === SILENT);
  const kind = trouble ? (held ? "held" : "bad") : silent ? "silent" : "good";
  text($("status"), stopped ? "Stopped" : !connected ? (refused ? "Refused" : "No connection") : state.paused ? "Paused" : trouble ? "Held back"
    : silent ? "Nothing left to say" : "Releasing");
  $("status").dataset.kind = kind;
  $("trouble").hidden = !trouble;
  $("trouble").dataset.kind = kind;
  text($("trouble"), kind === "bad" && connected && !stopped ? `Nothing is released. ${trouble}` : trouble || "");
  const over = !connected || stopped;
  $("pause").disabled = $("stop").disabled = over;
  text($("pause"), connected && state.paused ? "Resume" : "Pause");
}

function showSubjects() {
  const wanted = $("filter").value.toLowerCase();
  const lines = state.subjects.filter((line) => line.name.toLowerCase().includes(wanted));
  lines.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  $("filter").hidden = state.subjects.length < 8 && !wanted;
  const list = $("subjects");
  const rows = new Map([...list.children].map((row) => [row.firstChild.dataset.name, row]));
  lines.forEach((line, place) => {
    const row = rows.get(line.name) || subjectRow(line.name);
    rows.delete(line.name);
    const button = row.firstChild;
    button.className = { blocked: "shut", [SILENT]: "silent" }[line.state] || "";
    button.setAttribute("aria-current", line.name === chosen);
    button.querySelector("i").style.width = `${100 * (1 - line.left)}%`;
    text(button.querySelector(".state"), line.state);
    if (list.children[place] !== row) list.insertBefore(row, list.children[place] || null);
  });
  rows.forEach((row) => row.remove());
  const hidden = state.in_memory - state.subjects.length;
  text($("more"), hidden > 0 ? `and ${number(hidden)} that were heard earlier` : "");
  const silent = state.subjects.filter((line) => line.state === SILENT).length;
  $("silent").hidden = !silent;
  text($("silent"), `${number(silent)} of ${number(state.subjects.length)} shown: nothing left to say`);
}

function subjectRow(name) {
  const mini = make("span", { class: "mini", title: "used up" }, make("i"));
  const label = make("span", { class: "name" }, name);
  const button = make("button", { type: "button" }, label, mini, make("span", { class: "state" }));
  button.dataset.name = name;
  button.addEventListener("click", () => choose(name));
  return make("li", {}, button);
}

function showSent(subject) {
  text($("name"), subject.name);
  const last = subject.history.filter((each) => each.symbol !== null).at(-1);
  const said = $("said");
  const mark = last ? `${last.session} ${last.step} ${last.symbol}` : "none";
  if (said.dataset.mark !== mark) {
    said.dataset.mark = mark;
    said.classList.toggle("merged", Boolean(last && last.merged));
    said.replaceChildren(...(last ? sentence(last) : ["Nothing was sent since the gateway started."]));
  }
  const waits = { "silent in this step": "Nothing is sent in this step.", "has spoken in this step": "", resting: "It rests until its next session.", new: "", blocked: "", [SILENT]: "" }[subject.state];
  const next = waits === undefined ? `Now it ${subject.state}; the other sensors are not heard.` : waits;
  const place = state.moving ? "Step" : "Session";
  text($("note"), last ? `${place} ${state.moving ? last.step : last.session}, at ${clock(last.time)}. ${next}` : next);
  $("blocked").hidden = !subject.blocked;
  text($("blocked"), subject.blocked || "");
  $("exhausted").hidden = subject.state !== SILENT;
  text($("exhausted"), state.exhausted);
}

function sentence(last) {
  const sensor = make("b", {}, last.sensor), symbol = make("b", { class: "symbol" }, last.symbol);
  return last.merged ? [sensor, " spoke, and ", symbol, " was sent in place of its reading"] : [sensor, " spoke, and ", symbol, " was sent"];
}

function showUseful(subject) {
  const list = $("useful");
  if (list.children.length !== state.useful.length) {
    list.replaceChildren(...state.useful.map((name) => {
      const track = make("span", { class: "track" }, make("i"));
      return make("li", {}, make("span", { class: "label" }, name), track, make("span", { class: "chance" }));
    }));
  }
  const most = Math.max(...subject.useful);
  subject.useful.forEach((chance, place) => {
    const row = list.children[place];
    row.classList.toggle("most", chance === most);
    row.querySelector("i").style.width = `${100 * chance}%`;
    text(row.querySelector(".chance"), percent(chance));
  });
}

function showChart(subject) {
  if (subject.day) return showDay(subject);
  const { kind, limit, start } = state.bound, shares = kind === "confidence";
  const plain = (value) => (shares ? percent(value) : `${value.toFixed(2)} bits`);
  // The limit as it is: 99.5 %, and neither 99 nor 100. Rounding must not look like a crossing.
  const most = limit === null ? "" : shares ? `${Number((100 * limit).toPrecision(8))} %` : `${Number(limit.toFixed(4))} bits`;
  const said = (value) => (value < limit && (plain(value) === plain(limit) || Math.round(100 * value) > 100 * limit) ? `just under ${most}` : plain(value));
  const unit = shares ? "sure of the likeliest secret, whichever it is" : "said about the secret";
  text($("secret-hint"), `${said(subject.known)} ${unit}${limit === null ? "" : `; the limit is ${most}`}`);
  const points = subject.history, width = $("chart").clientWidth || 600, height = $("chart").clientHeight || 208;
  const top = shares ? 1 : 1.25 * (limit || 1), left = 40, right = width - 8, base = height - 20;
  const x = (place) => left + ((right - left) * place) / Math.max(points.length, 12);
  const y = (value) => base - ((base - 6) * Math.min(value, top)) / top;
  const parts = [];
  if (limit !== null) {
    parts.push(draw("rect", { class: "forbidden", x: left, y: y(top), width: right - left, height: y(limit) - y(top) }));
  }
  for (const tick of shares ? [0, 0.5, 1] : [0, limit || 1]) {
    parts.push(draw("line", { class: "axis", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
    parts.push(draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, shares ? percent(tick).replace(" ", "") : tick.toFixed(1)));
  }
  const before = points.length && (points[0].session || points[0].step) ? points[0].known : start;
  let path = `M${x(0)},${y(before)}`;
  points.forEach((point, place) => {
    path += `H${x(place + 1)}V${y(point.known)}`;
    if (point.symbol === null) parts.push(draw("line", { class: "turn", x1: x(place + 1), x2: x(place + 1), y1: 6, y2: base }));
  });
  const end = x(points.length);
  parts.push(draw("path", { class: "area", d: `${path}L${end},${base}H${left}Z` }));
  if (limit !== null) {
    parts.push(draw("line", { class: "limit", x1: left, x2: right, y1: y(limit), y2: y(limit) }));
    parts.push(draw("text", { class: "over", x: right - 4, y: y(limit) - 7, "text-anchor": "end" }, `limit ${most}`));
  }
  parts.push(draw("path", { class: "path", d: path }));
  points.forEach((point, place) => {
    if (point.symbol === null) return;
    parts.push(draw("circle", { class: point.merged ? "hollow" : "plain", r: 3.4, cx: x(place + 1), cy: y(point.known) }));
  });
  parts.push(draw("text", { x: left, y: height - 3 }, "oldest first; dotted: a session ends"));
  const chart = $("chart");
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const highest = points.reduce((most, point) => Math.max(most, point.known), start);
  chart.setAttribute("aria-label", `Now ${said(subject.known)}, at most ${said(highest)} over the last ${points.length} entries${limit === null ? "" : `, limit ${most}`}.`);
  chart.replaceChildren(...parts);
}

// The day of a subject whose secret moves: how sure the provider was of each moment then, and is of it in hindsight.
function showDay(subject) {
  const { kind, limit } = state.bound, { first, time, then, hindsight, silent, useful } = subject.day;
  const seconds = state.moving.seconds, width = $("chart").clientWidth || 600, height = $("chart").clientHeight || 208;
  const left = 40, right = width - 8, base = height - 20, band = 14;
  const x = (step) => left + ((right - left) * step) / Math.max(then.length, 24);
  const y = (value) => base - band - (base - band - 6) * value;
  const parts = [], stretch = (flags, visit) => {
    for (let from = 0; from < flags.length; from++) {
      let to = from;
      while (to < flags.length && flags[to] === flags[from]) to++;
      visit(flags[from], from, to);
      from = to - 1;
    }
  };
  const shares = kind === "confidence" && limit !== null;
  if (shares) parts.push(draw("rect", { class: "forbidden", x: left, y: y(1), width: right - left, height: y(limit) - y(1) }));
  stretch(silent, (quiet, from, to) => {
    if (quiet) parts.push(draw("rect", { class: "quiet", x: x(from), y: 6, width: x(to) - x(from), height: base - 6 - band }));
  });
  const guesses = useful.map((row) => row.indexOf(Math.max(...row)));
  stretch(guesses, (guess, from, to) => {
    parts.push(draw("rect", { class: `guess guess${guess % 6}`, x: x(from), y: base - band + 3, width: x(to) - x(from), height: band - 3 }));
    if (x(to) - x(from) > 8 * state.useful[guess].length) {
      parts.push(draw("text", { class: "guessed", x: (x(from) + x(to)) / 2, y: base - 2, "text-anchor": "middle" }, state.useful[guess]));
    }
  });
  for (const tick of [0, 0.5, 1]) {
    parts.push(draw("line", { class: "axis", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
    parts.push(draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick).replace(" ", "")));
  }
  const line = (values) => values.map((value, step) => `${step ? "L" : "M"}${x(step + 0.5)},${y(value)}`).join("");
  parts.push(draw("path", { class: "late", d: line(hindsight) }));
  parts.push(draw("path", { class: "path", d: line(then) }));
  const most = shares ? `${Number((100 * limit).toPrecision(8))} %` : "";
  if (shares) {
    parts.push(draw("line", { class: "limit", x1: left, x2: right, y1: y(limit), y2: y(limit) }));
    parts.push(draw("text", { class: "over", x: right - 4, y: y(limit) - 7, "text-anchor": "end" }, `limit ${most}`));
  }
  const when = (step) => clock(time + step * seconds);
  if (then.length) {
    parts.push(draw("text", { x: left, y: height - 3 }, when(0)));
    parts.push(draw("text", { x: x(then.length), y: height - 3, "text-anchor": "end" }, when(then.length - 1)));
  }
  const chart = $("chart"), highest = Math.max(0, ...then, ...hindsight);
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const free = subject.free === null ? "" : ` Locked until about ${clock(subject.free)}.`;
  // Rounding must not look like a crossing.
  const said = shares && highest < limit && Math.round(100 * highest) >= 100 * limit ? `just under ${most}` : percent(highest);
  const known = then.length ? `Of any moment shown it knows the likeliest secret at most ${said} surely${shares ? `; the limit is ${most}` : ""}.` : "";
  text($("secret-hint"), `${known}${free} Line: at the time; faint line: in hindsight. Shaded: silence. Below: what it takes the useful thing for.`);
  chart.setAttribute("aria-label", `Steps ${first} to ${first + then.length - 1}. ${known}${free}`);
  chart.replaceChildren(...parts);
}

function showLeft(subject) {
  const left = Math.round(100 * subject.left), meter = $("meter"), silent = subject.state === SILENT;
  text($("left"), state.bound.limit === null ? "no bound" : silent ? "nothing" : percent(subject.left));
  meter.setAttribute("aria-valuenow", left);
  meter.classList.toggle("low", left < 20);
  meter.classList.toggle("silent", silent);
  meter.firstElementChild.style.width = `${left}%`;
  text($("left-note"), silent ? "for good, under this bound and policy" : left < 1 ? "at its limit: only what says nothing more about the secret can still be sent"
    : state.moving ? "of the way to the limit, of the moment that is nearest to it" : "of what may become known of the secret, over all sessions");
}

function showLog(subject) {
  const sent = subject.history.filter((each) => each.symbol !== null), merged = sent.filter((each) => each.merged).length;
  text($("log-note"), sent.length ? `${merged} of the last ${sent.length} were merged or withheld` : "");
  const rows = subject.history.slice(-8).reverse().map((each) => {
    const stop = each.symbol === null, sensor = make("small", {}, stop ? "" : each.sensor);
    const words = stop ? `session ${each.session} ends` : `${each.symbol} `;
    const mark = make("span", stop ? {} : { class: each.merged ? "dot merged" : "dot", title: each.merged ? "merged" : "as read" });
    const moment = make("time", { datetime: new Date(1000 * each.time).toISOString() }, clock(each.time));
    return make("li", {}, mark, make("span", { class: stop ? "what stop" : "what" }, words, sensor), moment);
  });
  $("log").replaceChildren(...rows);
}

function showCounts() {
  const { received, released, stopped, ...others } = state.counters;
  const usual = new Set(["not asked", "resting", "nothing left", "gathered", "sent again", "paused"]);
  const rows = [["received", received, "main"], ["released", released, "main"], ["sessions ended", stopped, "main"], null];
  for (const [name, count] of Object.entries(others).sort()) if (count) rows.push([name, count, usual.has(name) ? "" : "bad"]);
  $("counts").replaceChildren(...rows.flatMap((row) => row
    ? [make("dt", { class: row[2] }, row[0]), make("dd", { class: row[2] }, number(row[1]))]
    : [make("div", { class: "rule", role: "presentation" })]));
  text($("about"), `Bound kept by ${state.enforce}. Policy ${state.policy}.`);
}

$("pause").addEventListener("click", () => tell(state.paused ? "resume" : "pause"));
$("stop").addEventListener("click", () => $("confirm").showModal());
$("stay").addEventListener("click", () => $("confirm").close());
$("really").addEventListener("click", () => { $("confirm").close(); tell("stop"); });
$("filter").addEventListener("input", () => state && showSubjects());
addEventListener("resize", () => state && state.chosen && showChart(state.chosen));
listen();
