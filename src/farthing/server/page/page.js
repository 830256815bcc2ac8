// The page of a farthing server. Whatever comes from the server is put in place as text, never as markup.
"use strict";

const state = { token: "", me: null, sets: [], plan: null, asked: null, told: null, cap: null, turn: 0, busy: false };
const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// ---- small pieces

function make(kind, text, facts = {}) {
  const node = document.createElement(kind);
  if (text !== undefined && text !== null) node.textContent = String(text);
  for (const [name, value] of Object.entries(facts)) node.setAttribute(name, value);
  return node;
}

function draw(kind, facts, text) {
  const node = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(facts)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = String(text);
  return node;
}

function show(id, visible) { at(id).hidden = !visible; }

function say(id, text) {
  at(id).textContent = text;
  show(id, Boolean(text));
}

function number(x) {
  if (x === null || x === undefined) return "–";
  if (typeof x !== "number") return String(x);
  const digits = Math.abs(x) >= 1000 ? 0 : Math.abs(x) >= 1 ? 2 : 4;
  return x.toLocaleString("en", { maximumFractionDigits: digits });
}

function loss(facts) { return facts ? `epsilon ${Number(facts.epsilon).toPrecision(3)}` : "–"; }

function words(error) {
  return [error.message, error.rule && `Rule: ${error.rule}.`, error.next && `Next: ${error.next}.`].filter(Boolean).join(" ");
}

// ---- the server

async function call(path, body, accept, signal) {
  const headers = { Authorization: `Bearer ${state.token}` };
  if (accept) headers.Accept = accept;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined, signal, credentials: "omit",
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ error: { message: "the server does not answer", rule: "", next: "try again" } }));
  throw Object.assign(new Error(told.error.message), { told: told.error, status: response.status });
}

const told = async (path, body, signal) => (await call(path, body, undefined, signal)).json();
const reason = (error) => (error.told ? words(error.told) : "The server cannot be reached. Try again.");

// ---- who is here

async function enter(token) {
  state.token = token;
  say("enter-error", "");
  try {
    const [me, sets] = await Promise.all([told("/v1/me"), told("/v1/datasets")]);
    state.me = me;
    state.sets = sets.datasets;
  } catch (error) {
    leave();
    say("enter-error", reason(error));
    return;
  }
  sessionStorage.setItem("farthing", token);
  at("who").textContent = `${state.me.name}, ${state.me.role}`;
  for (const [id, visible] of [["enter", false], ["inside", true], ["who", true], ["leave", true]]) show(id, visible);
  show("question", state.me.role !== "auditor");
  show("owner", state.me.role !== "analyst");
  fill(at("dataset"), state.sets.map((one) => [one.name, one.name]));
  chooseSet();
  books();
}

function leave() {
  state.token = "";
  sessionStorage.removeItem("farthing");
  for (const [id, visible] of [["enter", true], ["inside", false], ["who", false], ["leave", false], ["answer", false]]) show(id, visible);
  at("token").value = "";
  at("token").focus();
}

function fill(select, pairs) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", text, { value })));
}

const chosen = () => state.sets.find((one) => one.name === at("dataset").value);

function chooseSet() {
  const one = chosen();
  if (!one) return;
  const columns = Object.entries(one.columns);
  const numeric = columns.filter(([, kind]) => kind === "integer" || kind === "float");
  fill(at("column"), numeric.map(([name]) => [name, name]));
  fill(at("group"), [["", "everything"], ...one.keys.map((name) => [name, name])]);
  fill(at("filter"), [["", "no filter"], ...columns.map(([name]) => [name, name])]);
  if (one.keys.length) at("group").value = one.keys.includes("origin") ? "origin" : one.keys[0];
  if (one.defaults.absolute) at("absolute").value = one.defaults.absolute;
  if (one.defaults.relative) at("accuracy").value = Math.round((100 * Math.log(0.5 / one.defaults.relative)) / Math.log(100));
  gauge(one);
  if (state.me.role !== "auditor") build();
}

function gauge(one) {
  at("gauge").value = one.used;
  at("gauge-words").textContent =
    `${(100 * one.used).toPrecision(2)} % used; left ${loss(one.remaining)} of ${loss(one.total)}` + (one.total.delta ? ` at delta ${one.total.delta}` : "");
  at("promise").textContent = one.promise;
  at("unit").textContent = one.unit;
}

// ---- a question, from clicks

const quotedName = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

function literal(kind, text) {
  if ((kind === "integer" || kind === "float") && text.trim() !== "" && Number.isFinite(Number(text))) return String(Number(text));
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return kind === "date" ? `DATE ${quoted}` : kind === "timestamp" ? `TIMESTAMP ${quoted}` : quoted;
}

function build() {
  const one = chosen();
  const what = at("aggregate").value;
  const counts = what === "COUNT(*)";
  for (const id of ["column-field", "lower-field", "upper-field"]) show(id, !counts);
  const alias = { "COUNT(*)": "n", AVG: "mean", SUM: "total", MEDIAN: "middle" }[what];
  const ends = `${Number(at("lower").value) || 0}, ${Number(at("upper").value) || 0}`;
  const inner = counts ? what : `${what}(CLAMP(${quotedName(at("column").value)}, ${ends}))`;
  const group = at("group").value && quotedName(at("group").value);
  const filter = at("filter").value;
  const where = filter && at("against").value !== "" ? ` WHERE ${quotedName(filter)} ${at("compare").value} ${literal(one.columns[filter], at("against").value)}` : "";
  at("sql").value = `SELECT ${group ? `${group}, ` : ""}${inner} AS ${alias} FROM ${quotedName(one.name)}${where}${group ? ` GROUP BY ${group}` : ""}`;
  state.cap = null;
  later();
}

// ---- the target, by the slider: counts and sums relative, means in their unit, quantiles by rank

function target() {
  const sql = at("sql").value;
  const part = 0.5 * Math.pow(0.01, Number(at("accuracy").value) / 100);
  const rounded = Number(part.toPrecision(2));
  const confidence = Number(at("confidence").value);
  const clamps = /CLAMP\([^,]+,\s*(-?[\d.]+),\s*(-?[\d.]+)\)/i.exec(sql);
  const kind = /\b(MEDIAN|QUANTILE|PERCENTILE\w*|MIN|MAX)\s*\(/i.test(sql) ? "rank" : /\b(AVG|VAR\w*|STD\w*)\s*\(/i.test(sql) ? "mean" : "count";
  show("absolute-field", kind !== "rank" && !(kind === "mean" && clamps));
  if (kind === "rank") return [{ rank: rounded, confidence }, `${number(100 * rounded)} % of rank`];
  if (kind === "mean") {
    const width = clamps ? Number(((Number(clamps[2]) - Number(clamps[1])) * part * 0.5).toPrecision(2)) : Number(at("absolute").value);
    return [{ absolute: width, relative: 0, confidence }, number(width)];
  }
  return [{ relative: rounded, absolute: Number(at("absolute").value) || 0, confidence }, `${number(100 * rounded)} %`];
}

// ---- its price, before anything is paid

let timer = 0;
let under = null;

function later() {
  const [, text] = target();
  at("accuracy-told").textContent = text;
  at("accuracy").setAttribute("aria-valuetext", `within ${text}`);
  at("pay").disabled = true;
  state.plan = null;
  clearTimeout(timer);
  timer = setTimeout(price, 300);
}

async function price() {
  const turn = ++state.turn;
  if (under) under.abort();
  under = new AbortController();
  const [accuracy] = target();
  const asked = { dataset: at("dataset").value, sql: at("sql").value, ...accuracy, ...(state.cap ? { cap: state.cap } : {}) };
  say("ask-error", "");
  try {
    const plan = await told("/v1/plan", asked, under.signal);
    if (turn === state.turn) tellPrice(plan, asked);
  } catch (error) {
    if (turn !== state.turn || error.name === "AbortError") return;
    at("price").replaceChildren(make("p", reason(error)));
    for (const id of ["coarsen", "more"]) show(id, false);
  }
}

function tellPrice(plan, asked) {
  const possible = plan.fits && !plan.hopeless;
  state.plan = possible ? plan.plan : null;
  state.asked = asked;
  const lines = [];
  const head = make("p");
  head.append(make("strong", plan.free ? "Free: already paid for" : possible ? `Costs at most ${loss(plan.worst_price)}` : "Out of reach"));
  lines.push(head);
  if (possible && !plan.free && plan.left_after) lines.push(make("p", `Left afterwards: at least ${loss(plan.left_after)}. Large groups usually pay far less.`));
  if (!possible) lines.push(make("p", `What is left: ${loss(plan.remaining)}; for one question: ${loss(plan.cap)}. Nothing is charged.`));
  if (plan.advice) lines.push(make("p", plan.advice));
  at("price").replaceChildren(...lines);
  at("pay").disabled = !possible || state.busy;
  at("pay").textContent = plan.free ? "Show" : "Pay and ask";
  const tight = !possible || !plan.reachable;
  show("coarsen", tight && Number(at("accuracy").value) > 0);
  show("more", tight && !state.cap);
}

function coarsen() {
  at("accuracy").value = Math.max(0, Number(at("accuracy").value) - 12);
  later();
}

function allowMore() {
  state.cap = "all";
  later();
}

// ---- the answer, while it closes in

async function ask(event) {
  event.preventDefault();
  if (!state.plan || state.busy) return;
  const plan = state.plan;
  const asked = state.asked;
  state.busy = true;
  at("pay").disabled = true;
  say("ask-error", "");
  show("progress", true);
  at("closing").replaceChildren();
  at("progress-words").textContent = "Asking.";
  try {
    const response = await call("/v1/ask", { plan }, "text/event-stream");
    const answer = await followed(response);
    state.told = { answer, asked, plan };
    tellAnswer();
  } catch (error) {
    say("ask-error", reason(error));
  } finally {
    state.busy = false;
    show("progress", false);
    await renew();
    later();
  }
}

async function followed(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const looks = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw Object.assign(new Error("ended"), { told: { message: "the connection ended before the answer", next: "ask again: it is not charged twice" } });
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const name = /^event: (.*)$/m.exec(part);
      const data = /^data: (.*)$/m.exec(part);
      if (!name || !data) continue;
      const facts = JSON.parse(data[1]);
      if (name[1] === "error") throw Object.assign(new Error("refused"), { told: facts.error });
      if (name[1] === "answer") return facts;
      looks.push(facts);
      tellLook(facts, looks);
    }
  }
}

function tellLook(facts, looks) {
  at("progress-words").textContent =
    `Look ${facts.look}: ${number(facts.done)} of ${number(facts.groups)} done` + (facts.half_width ? `, the widest is within ${number(facts.half_width)}` : "") + ".";
  const seen = looks.filter((one) => one.half_width).slice(-60);
  if (seen.length < 2) return;
  const most = Math.max(...seen.map((one) => one.half_width));
  const chart = draw("svg", { viewBox: "0 0 400 60", class: "chart", "aria-hidden": "true" });
  const place = (one, k) => [(400 * k) / (seen.length - 1), 30 * (one.half_width / most)];
  for (const side of [-1, 1]) {
    chart.append(draw("polyline", { class: "line", points: seen.map((one, k) => { const [x, y] = place(one, k); return `${x},${30 + side * y * 0.95}`; }).join(" ") }));
  }
  at("closing").replaceChildren(chart);
}

// ---- what came

function columnsOf(rows) {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const numbers = names.filter((name) => names.includes(`${name}_lower`) && names.includes(`${name}_upper`));
  const ends = numbers.flatMap((name) => [`${name}_lower`, `${name}_upper`]);
  return { numbers, keys: names.filter((name) => !numbers.includes(name) && !ends.includes(name) && name !== "met" && name !== "paid") };
}

function tellAnswer() {
  const { answer, asked } = state.told;
  const rows = answer.answers || [];
  const { numbers, keys } = columnsOf(rows);
  show("answer", true);
  const met = rows.filter((row) => row.met).length;
  at("answer-words").textContent =
    `${answer.goal}, ${number(100 * answer.confidence)} % confidence, met by ${met} of ${rows.length}. Paid ${loss(answer.paid)}; left ${loss(answer.remaining)}.`;
  at("about").textContent = `${answer.about}. ${asked.sql}`;
  const head = [...keys.map((name) => [name, false]), ...numbers.flatMap((name) => [[name, true], ["interval", true]]), ["met", false], ["paid", true]];
  const lines = rows.map((row) => [
    ...keys.map((name) => (row[name] === null ? "NULL" : row[name])),
    ...numbers.flatMap((name) => [number(row[name]), `${number(row[`${name}_lower`])} to ${number(row[`${name}_upper`])}`]),
    row.met ? "yes" : "no", row.paid.toPrecision(3),
  ]);
  table(at("rows"), "Each number with its interval, and what its group paid", head, lines);
  const name = numbers[0];
  at("bars").replaceChildren(...(name && keys.length ? [bars(rows, keys, name)] : []));
  at("paid-chart").replaceChildren(...(name && rows.length > 2 && rows.some((row) => row.paid > 0) ? payers(rows, keys, name) : []));
  show("python", false);
  at("answer-title").focus({ preventScroll: false });
}

const labelOf = (row, keys) => keys.map((key) => (row[key] === null ? "NULL" : String(row[key]))).join(", ");

// As wide as the card, so that letters keep their size on a telephone.
const width = () => Math.max(280, at("answer").clientWidth - 34);

function bars(rows, keys, name) {
  const shown = rows.length <= 30 ? rows : [...rows].sort((a, b) => b[name] - a[name]).slice(0, 30);
  const step = 22, left = 110, wide = width();
  const low = Math.min(0, ...shown.map((row) => row[`${name}_lower`] ?? 0));
  const high = Math.max(...shown.map((row) => row[`${name}_upper`] ?? row[name]), low + 1e-9);
  const x = (value) => left + ((value - low) / (high - low)) * (wide - left - 10);
  const title = `${name} by ${keys.join(", ")}, with intervals` + (shown.length < rows.length ? `: the ${shown.length} largest of ${rows.length}` : "");
  const chart = draw("svg", { viewBox: `0 0 ${wide} ${shown.length * step + 24}`, class: "chart", role: "img", "aria-label": title });
  chart.append(draw("title", {}, title));
  shown.forEach((row, k) => {
    const y = k * step + 4;
    const label = labelOf(row, keys);
    chart.append(draw("text", { x: left - 8, y: y + 12, "text-anchor": "end" }, label.length > 14 ? `${label.slice(0, 13)}…` : label));
    chart.append(draw("rect", { class: "bar", x: Math.min(x(0), x(row[name])), y, width: Math.abs(x(row[name]) - x(0)), height: step - 8 }));
    const ends = [row[`${name}_lower`] ?? low, row[`${name}_upper`] ?? high].map(x);
    chart.append(draw("path", { class: "whisker", d: `M${ends[0]} ${y + 2}v10M${ends[0]} ${y + 7}H${ends[1]}M${ends[1]} ${y + 2}v10` }));
  });
  chart.append(draw("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: shown.length * step }));
  chart.append(draw("text", { x: x(low), y: shown.length * step + 16 }, number(low)));
  chart.append(draw("text", { x: x(high), y: shown.length * step + 16, "text-anchor": "end" }, number(high)));
  return chart;
}

function payers(rows, keys, name) {
  const wide = width(), tall = 150, left = 60;
  const size = (row) => Math.log10(Math.max(1, Math.abs(row[name])));
  const [low, high] = [Math.min(...rows.map(size)), Math.max(...rows.map(size))];
  const most = Math.max(...rows.map((row) => row.paid), 1e-12);
  const title = "Who paid what: each group's loss against its size";
  const chart = draw("svg", { viewBox: `0 0 ${wide} ${tall + 34}`, class: "chart", role: "img", "aria-label": title });
  chart.append(draw("path", { class: "axis", d: `M${left} 4V${tall}H${wide - 8}`, fill: "none" }));
  for (const row of rows) {
    const dot = draw("circle", { class: "dot", r: 5, cx: left + 8 + ((size(row) - low) / (high - low || 1)) * (wide - left - 30), cy: tall - (row.paid / most) * (tall - 12) });
    dot.append(draw("title", {}, `${labelOf(row, keys)}: ${number(row[name])}, paid ${row.paid.toPrecision(3)}`));
    chart.append(dot);
  }
  chart.append(draw("text", { x: left - 6, y: 14, "text-anchor": "end" }, most.toPrecision(2)));
  chart.append(draw("text", { x: left, y: tall + 18 }, `${name} about ${number(Math.pow(10, low))}`));
  chart.append(draw("text", { x: wide - 8, y: tall + 18, "text-anchor": "end" }, number(Math.pow(10, high))));
  return [make("h3", title), chart];
}

function table(node, caption, head, lines) {
  const row = (cells, kind) => {
    const line = make("tr");
    cells.forEach((cell, k) => line.append(make(kind, cell, { ...(head[k][1] ? { class: "number" } : {}), ...(kind === "th" ? { scope: "col" } : {}) })));
    return line;
  };
  const top = make("thead"), body = make("tbody");
  top.append(row(head.map(([name]) => name), "th"));
  body.append(...lines.map((line) => row(line, "td")));
  node.replaceChildren(make("caption", caption), top, body);
}

// ---- taking it away

async function save(kind, ending) {
  try {
    const response = await call("/v1/ask", { plan: state.told.plan }, kind);
    const link = make("a", "", { download: `answer.${ending}`, href: URL.createObjectURL(await response.blob()) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    say("ask-error", reason(error));
  }
}

function python() {
  const { dataset, sql, ...how } = state.told.asked;
  const text = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));
  const options = Object.entries(how).map(([name, value]) => `, ${name}=${text(value)}`).join("");
  at("python").textContent = `import farthing\n\nwith farthing.connect(${text(location.origin)}, token, dataset=${text(dataset)}) as session:\n    answer = session.sql(${text(sql)}${options})\n`;
  show("python", true);
  at("python").focus();
}

// ---- the books

async function renew() {
  try {
    state.sets = (await told("/v1/datasets")).datasets;
    gauge(chosen());
    await books();
  } catch (error) {
    say("ask-error", reason(error));
  }
}

async function books() {
  const { history } = await told("/v1/history?limit=50");
  table(at("history"), history.length ? "Newest first" : "Nothing was asked yet",
    [["when", false], ["who", false], ["question", false], ["target", false], ["paid", true], ["state", false]],
    history.map((one) => [one.opened.slice(0, 16).replace("T", " "), one.who, one.question, one.target || "", one.paid ? Number(one.paid.epsilon).toPrecision(3) : "–", one.state]));
  if (state.me.role === "analyst") return;
  const { people } = await told("/v1/people");
  table(at("people"), "Losses are epsilons", [["name", false], ["role", false], ["until", false], ["state", false], ["shares", false]],
    people.map((one) => [one.name, one.role, one.until || "", one.state, Object.entries(one.shares).map(([name, held]) => `${name}: ${loss(held.spent)} of ${loss(held.share)}`).join("; ")]));
  table(at("sets"), "", [["data set", false], ["unit", false], ["used", true], ["left", true]],
    state.sets.map((one) => [one.name, one.unit, `${(100 * one.used).toPrecision(2)} %`, loss(one.remaining)]));
}

async function verify() {
  at("verified").textContent = "Checking.";
  try {
    for (const one of state.sets) await told("/v1/verify", { dataset: one.name });
    at("verified").textContent = "The books agree with their entries, and their chain is whole.";
  } catch (error) {
    at("verified").textContent = reason(error);
  }
}

// ---- what the hands do

at("enter-form").addEventListener("submit", (event) => { event.preventDefault(); enter(at("token").value.trim()); });
at("leave").addEventListener("click", leave);
at("dataset").addEventListener("change", chooseSet);
for (const id of ["aggregate", "column", "lower", "upper", "group", "filter", "compare", "against"]) at(id).addEventListener("input", build);
for (const id of ["accuracy", "absolute", "confidence", "sql"]) at(id).addEventListener("input", later);
at("ask-form").addEventListener("submit", ask);
at("coarsen").addEventListener("click", coarsen);
at("more").addEventListener("click", allowMore);
at("to-csv").addEventListener("click", () => save("text/csv", "csv"));
at("to-parquet").addEventListener("click", () => save("application/vnd.apache.parquet", "parquet"));
at("to-arrow").addEventListener("click", () => save("application/vnd.apache.arrow.stream", "arrows"));
at("to-python").addEventListener("click", python);
at("verify").addEventListener("click", verify);
const before = sessionStorage.getItem("farthing");
if (before) enter(before);
