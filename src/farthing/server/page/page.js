// The page of a farthing server: who is here, what a question costs, its answer, and the books.

import { bars, closing, columnsOf, payers } from "./charts.js";
import { at, fill, loss, make, mark, meter, near, number, percent, say, short, show, square, table } from "./dom.js";
import * as owner from "./owner.js";
import { promise } from "./promise.js";
import { clicked, kindOf, rounded, target } from "./question.js";
import { keep, notebook, python } from "./taking.js";

const state = { token: "", me: null, sets: [], plan: null, asked: null, told: null, cap: null, instead: null, turn: 0, busy: false };

const words = (error) => [error.message, error.rule && `Rule: ${error.rule}.`, error.next && `Next: ${error.next}.`].filter(Boolean).join(" ");
const reason = (error) => (error.told ? words(error.told) : "The server cannot be reached. Try again.");
const chosen = () => state.sets.find((one) => one.name === at("dataset").value);
const may = (...roles) => roles.includes(state.me.role);

// As wide as the card, so that letters keep their size on a telephone.
const width = (id) => Math.max(240, at(id).clientWidth - 34);

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

// ---- who is here

async function enter(token) {
  state.token = token;
  say("enter-error", "");
  try {
    const [me, sets] = await Promise.all([told("/v1/me"), told("/v1/datasets")]);
    state.me = me;
    state.sets = sets.datasets;
  } catch (error) {
    sessionStorage.removeItem("farthing");
    at("token").value = "";
    at("token").focus();
    say("enter-error", reason(error));
    return;
  }
  sessionStorage.setItem("farthing", token);
  at("who").textContent = `${state.me.name}, ${state.me.role}`;
  for (const [id, visible] of [["enter", false], ["inside", true], ["who", true], ["leave", true]]) show(id, visible);
  show("question", may("owner", "analyst"));
  show("owner", may("owner", "auditor"));
  fill(at("dataset"), state.sets.map((one) => [one.name, one.name]));
  chooseSet();
  at("main").focus();
  await tellBooks();
}

// What was shown to somebody is gone with the page.
function leave() {
  sessionStorage.removeItem("farthing");
  location.reload();
}

function chooseSet() {
  const one = chosen();
  if (!one) {
    show("question", false);
    say("frozen", "No data set is open to you. The owner of the data decides who may ask.");
    return;
  }
  const columns = Object.entries(one.columns);
  const numeric = columns.filter(([, kind]) => kind === "integer" || kind === "float");
  fill(at("column"), numeric.map(([name]) => [name, name]));
  fill(at("group"), [["", "everything"], ...one.keys.map((name) => [name, name])]);
  fill(at("filter"), [["", "no filter"], ...columns.map(([name]) => [name, name])]);
  if (one.keys.length) at("group").value = one.keys.includes("origin") ? "origin" : one.keys[0];
  if (one.defaults.absolute) at("absolute").value = one.defaults.absolute;
  if (one.defaults.relative) at("accuracy").value = Math.round((100 * Math.log(0.5 / one.defaults.relative)) / Math.log(100));
  at("columns").textContent = `Columns: ${columns.map(([name]) => name).join(", ")}. Public tables: ${Object.keys(one.tables).join(", ") || "none"}.`;
  tellBudget(one);
  if (may("owner", "analyst")) build();
}

// ---- the budget: what is used, and what the question that stands there would take

function tellBudget(one, plan) {
  const more = plan && plan.fits && !plan.free ? square(plan.worst_price) / square(one.total) : 0;
  const left = one.share ? ` of ${loss(one.total)} used by all together` : ` used, ${loss(one.remaining)} left of ${loss(one.total)}`;
  const text = `${percent(one.used)}${left}` + (one.total.delta ? ` at delta ${one.total.delta}` : "");
  const would = more ? `; this question would use at most ${percent(more)}` : "";
  at("gauge").replaceChildren(meter(one.used, more, text + would));
  at("gauge-words").textContent = `${text}${would}.`;
  show("share", Boolean(one.share));
  if (one.share) {
    const part = square(one.share.share) ? square(one.share.spent) / square(one.share.share) : 1;
    const own = `Your share: ${percent(part)} used, ${loss(one.share.left)} left of ${loss(one.share.share)}`;
    at("share-gauge").replaceChildren(meter(part, more && square(plan.worst_price) / square(one.share.share), own));
    at("share-words").textContent = `${own}.`;
  }
  say("frozen", one.frozen ? "Frozen by the owner: nothing new is charged. What was released before is free." : "");
  at("promise").replaceChildren(...promise(one));
}

// ---- the price, before anything is paid

let timer = 0;
let under = null;

function build() {
  at("sql").value = clicked(chosen());
  state.cap = null;
  later();
}

function later() {
  const [, text] = target();
  at("accuracy-told").textContent = text;
  mark(at("accuracy"), { "aria-valuetext": `within ${text}` });
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
    for (const id of ["coarsen", "more", "sizes"]) show(id, false);
  }
}

function priceWords(plan, possible) {
  const head = make("p");
  const title = plan.frozen ? "Frozen by the owner" : plan.free ? "Free: already paid for" : possible ? `Costs at most ${loss(plan.worst_price)}` : "Out of reach";
  head.append(make("strong", title));
  const lines = [head];
  if (plan.frozen) lines.push(make("p", "Nothing new is charged until the owner thaws it. What was released before is free."));
  else if (possible && !plan.free && plan.left_after) lines.push(make("p", `Left afterwards: at least ${loss(plan.left_after)}.${plan.reachable ? " Large groups usually pay far less." : ""}`));
  else if (!possible) lines.push(make("p", `It would take ${loss(plan.target_price ?? plan.worst_price)}. One question may cost ${loss(plan.cap)}, and ${loss(plan.remaining)} is left. It is refused, and nothing is charged.`));
  if (possible && !plan.reachable) {
    lines.push(make("p", `This target takes ${loss(plan.target_price)} for small groups, more than one question may cost (${loss(plan.cap)}): groups that are too small for it are given up early and marked as not met.`));
  }
  return lines;
}

function tellPrice(plan, asked) {
  const possible = plan.fits && !plan.hopeless;
  const tight = !plan.frozen && (!possible || !plan.reachable);
  state.plan = possible ? plan.plan : null;
  state.asked = asked;
  at("price").replaceChildren(...priceWords(plan, possible));
  at("pay").disabled = !possible || state.busy;
  at("pay").textContent = plan.free ? "Show" : tight ? "Pay and ask anyway" : "Pay and ask";
  const buys = plan.half_width > 0 && kindOf(asked.sql) === "count" && plan.fits ? rounded(plan.half_width) : null;
  state.instead = buys > asked.absolute ? buys : null;
  at("coarsen").textContent = state.instead ? `Ask within ${number(state.instead)} instead` : "Ask more coarsely";
  show("coarsen", tight && Boolean(state.instead || Number(at("accuracy").value) > 0));
  show("more", tight && !state.cap);
  const sizes = (plan.prices || []).filter((one) => one.size > 0);
  show("sizes", !plan.free && sizes.length > 0);
  table(at("prices"), "Made from the target alone; no data are read", [["a group of", true], ["is within", true], ["and pays epsilon", true]],
    sizes.map((one) => [number(one.size), number(one.half_width), short(one.epsilon)]));
  tellBudget(chosen(), plan);
}

function coarsen() {
  if (state.instead) at("absolute").value = state.instead;
  else at("accuracy").value = Math.max(0, Number(at("accuracy").value) - 12);
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
  const { plan, asked } = state;
  const looks = [];
  state.busy = true;
  at("pay").disabled = true;
  say("ask-error", "");
  show("progress", true);
  at("closing").replaceChildren();
  at("progress-words").textContent = "Asking.";
  try {
    const response = await call("/v1/ask", { plan }, "text/event-stream");
    const answer = await followed(response, looks);
    state.told = { answer, asked, plan, looks };
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

async function followed(response, looks) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
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
  const wide = facts.half_width ? `, the widest interval is within ${number(Number(facts.half_width.toPrecision(3)))}` : "";
  at("progress-words").textContent = `Look ${facts.look}: ${number(facts.done)} of ${number(facts.groups)} groups done${wide}.`;
  at("closing").replaceChildren(...closing(looks, width("question")));
}

// ---- what came

const MOST_ROWS = 2000; // more would keep the browser busy; files have them all

function answerLines(all, keys, numbers, parameter) {
  const rows = all.slice(0, MOST_ROWS);
  const head = [...keys.map((name) => [name, false]), ...numbers.flatMap((name) => [[name, true], ["interval", true]]), ["met", false], [`paid (${parameter})`, true]];
  const lines = rows.map((row) => [
    ...keys.map((name) => (row[name] === null ? "NULL" : row[name])),
    ...numbers.flatMap((name) => [near(row[name], row, name), `${near(row[`${name}_lower`], row, name)} to ${near(row[`${name}_upper`], row, name)}`]),
    row.met ? "yes" : "no", row.paid ? row.paid.toPrecision(3) : "0",
  ]);
  return [head, lines];
}

function tellAnswer() {
  const { answer, asked } = state.told;
  const rows = answer.answers || [];
  const { numbers, keys } = columnsOf(rows);
  const parameter = Object.keys(answer.paid).find((name) => name !== "delta") || "epsilon";
  show("answer", true);
  const met = rows.filter((row) => row.met).length;
  const free = !answer.paid[parameter];
  at("answer-words").textContent =
    `${answer.goal[0].toUpperCase()}${answer.goal.slice(1)}, ${number(100 * answer.confidence)} % confidence, met by ${number(met)} of ${number(rows.length)}. ` +
    `${free ? "Free: it was paid for before" : `Paid ${loss(answer.paid)}`}; left ${loss(answer.remaining)}.`;
  at("about").textContent = `${answer.about}. ${asked.sql}`;
  const caption = "Each number with its interval, and what its group paid" + (rows.length > MOST_ROWS ? `: the first ${number(MOST_ROWS)} of ${number(rows.length)}; files have them all` : "");
  table(at("rows"), caption, ...answerLines(rows, keys, numbers, parameter));
  drawAnswer();
  show("python", false);
  say("take-error", "");
  at("answer-title").focus({ preventScroll: false });
}

function drawAnswer() {
  if (!state.told || at("answer").hidden) return;
  const { answer, looks } = state.told;
  const rows = answer.answers || [];
  const { numbers: [name], keys } = columnsOf(rows);
  const parameter = Object.keys(answer.paid).find((one) => one !== "delta") || "epsilon";
  const wide = width("answer");
  at("bars").replaceChildren(...(name && keys.length && rows.length ? bars(rows, keys, name, wide) : []));
  const somebody = name && rows.length > 2 && rows.some((row) => row.paid > 0);
  at("paid-chart").replaceChildren(...(somebody ? payers(rows, keys, name, parameter, wide) : []));
  const closed = closing(looks, wide);
  at("closed-chart").replaceChildren(...closed);
  show("closed", closed.length > 0);
}

// ---- taking it away

async function save(kind, ending) {
  say("take-error", "");
  try {
    const response = await call("/v1/ask", { plan: state.told.plan }, kind);
    keep(await response.blob(), `answer.${ending}`);
  } catch (error) {
    say("take-error", reason(error));
  }
}

// The same question at about half the width: it costs the difference.
function sharpen() {
  at("sql").value = state.told.asked.sql;
  at("accuracy").value = Math.min(100, Number(at("accuracy").value) + 15);
  if (Number(at("absolute").value) > 0) at("absolute").value = rounded(Number(at("absolute").value) / 2);
  state.cap = null;
  later();
  at("accuracy").focus();
}

function showPython() {
  at("python").textContent = python(state.told.asked, location.origin);
  show("python", true);
  at("python").focus();
}

// ---- the books

async function renew() {
  try {
    state.sets = (await told("/v1/datasets")).datasets;
    tellBudget(chosen());
    await tellBooks();
  } catch (error) {
    say("ask-error", reason(error));
  }
}

async function tellBooks() {
  const { history } = await told("/v1/history?limit=50");
  const several = state.sets.length > 1;
  table(at("history"), history.length ? "Newest first; the loss of each as epsilon" : "Nothing was asked yet",
    [["when (UTC)", false], ["who", false], ...(several ? [["data set", false]] : []), ["question", false], ["target", false], ["paid", true], ["state", false]],
    history.map((one) => [one.opened.slice(0, 16).replace("T", " "), one.who, ...(several ? [one.dataset] : []), one.question, one.target || "", one.paid ? short(one.paid.epsilon) : "–", one.state]));
  if (may("analyst")) return;
  const { people } = await told("/v1/people");
  owner.dataSets(state.sets, may("owner"), change);
  owner.people(people, state.sets, may("owner"), change);
}

async function change(path, body) {
  say("owner-error", "");
  try {
    await told(path, body);
  } catch (error) {
    say("owner-error", reason(error));
  }
  await renew();
  later();
  at("owner-title").focus();
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
at("to-notebook").addEventListener("click", () => keep(new Blob([notebook(state.told.asked, location.origin)], { type: "application/json" }), "answer.ipynb"));
at("sharpen").addEventListener("click", sharpen);
at("to-python").addEventListener("click", showPython);
at("verify").addEventListener("click", () => owner.verify(state.sets, (name) => told("/v1/verify", { dataset: name }), reason));
addEventListener("resize", drawAnswer);
const before = sessionStorage.getItem("farthing");
if (before) enter(before);
else at("token").focus();
