// Answers as pictures: intervals, who paid what, and how an interval closed in.

import { draw, make, number, short } from "./dom.js";

export const labelOf = (row, keys) => keys.map((key) => (row[key] === null ? "NULL" : String(row[key]))).join(", ");

const MOST = 30, DOTS = 2000;

const ends = (numbers) => numbers.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);

// Which columns of the rows are numbers with intervals, and which are keys.
export function columnsOf(rows) {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const numbers = names.filter((name) => names.includes(`${name}_lower`) && names.includes(`${name}_upper`));
  const sides = numbers.flatMap((name) => [`${name}_lower`, `${name}_upper`]);
  return { numbers, keys: names.filter((name) => !numbers.includes(name) && !sides.includes(name) && name !== "met" && name !== "paid") };
}

function picture(wide, tall, title) {
  const chart = draw("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "chart", role: "img", "aria-label": title });
  chart.append(draw("title", {}, title));
  return chart;
}

export function bars(rows, keys, name, wide) {
  const shown = rows.length <= MOST ? rows : [...rows].sort((a, b) => b[name] - a[name]).slice(0, MOST);
  const step = 22, left = Math.min(110, wide / 3);
  const low = Math.min(0, ...shown.map((row) => row[`${name}_lower`] ?? 0));
  const high = Math.max(...shown.map((row) => row[`${name}_upper`] ?? row[name]), low + 1e-9);
  const x = (value) => left + ((value - low) / (high - low)) * (wide - left - 10);
  const title = `${name} by ${keys.join(", ")}, with intervals` + (shown.length < rows.length ? `: the ${shown.length} largest of ${number(rows.length)}` : "");
  const chart = picture(wide, shown.length * step + 24, title);
  const letters = Math.floor(left / 8);
  shown.forEach((row, k) => {
    const y = k * step + 4;
    const label = labelOf(row, keys);
    const text = draw("text", { x: left - 8, y: y + 12, "text-anchor": "end" }, label.length > letters ? `${label.slice(0, letters - 1)}…` : label);
    text.append(draw("title", {}, label));
    chart.append(text);
    chart.append(draw("rect", { class: "bar", x: Math.min(x(0), x(row[name])), y, width: Math.abs(x(row[name]) - x(0)), height: step - 8 }));
    const [from, to] = [row[`${name}_lower`] ?? low, row[`${name}_upper`] ?? high].map(x);
    chart.append(draw("path", { class: "whisker", d: `M${from} ${y + 2}v10M${from} ${y + 7}H${to}M${to} ${y + 2}v10` }));
  });
  chart.append(draw("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: shown.length * step }));
  chart.append(draw("text", { x: x(low), y: shown.length * step + 16 }, number(Math.round(low))));
  chart.append(draw("text", { x: x(high), y: shown.length * step + 16, "text-anchor": "end" }, number(high)));
  return [make("h3", title), chart];
}

// Who paid what: the loss of each group against its size, sizes by powers of ten.
export function payers(all, keys, name, parameter, wide) {
  const every = Math.ceil(all.length / DOTS);
  const rows = all.filter((_, k) => k % every === 0);
  const tall = 190, left = 62, low = 26, foot = tall - 40;
  const size = (row) => Math.log10(Math.max(1, Math.abs(row[name])));
  const [smallest, largest] = ends(rows.map(size));
  const least = Math.floor(smallest), greatest = Math.max(least + 1, Math.ceil(largest));
  const most = Math.max(ends(rows.map((row) => row.paid))[1], 1e-12);
  const x = (power) => left + 12 + ((power - least) / (greatest - least)) * (wide - left - 40);
  const y = (paid) => foot - (paid / most) * (foot - low);
  const title = "Who paid what: the loss of each group against its size" + (every > 1 ? `, one group in ${every}` : "");
  const chart = picture(wide, tall, `${title}. The largest loss is ${most.toPrecision(2)} ${parameter}.`);
  chart.append(draw("path", { class: "axis", d: `M${left} ${low - 8}V${foot}H${wide - 8}`, fill: "none" }));
  for (let power = least; power <= greatest; power += 1) {
    chart.append(draw("line", { class: "axis", x1: x(power), x2: x(power), y1: foot, y2: foot + 4 }));
    const last = power === greatest;
    chart.append(draw("text", { x: last ? wide : x(power), y: foot + 17, "text-anchor": last ? "end" : "middle" }, number(10 ** power)));
  }
  chart.append(draw("text", { x: (left + wide) / 2, y: tall - 4, "text-anchor": "middle" }, `${name} of the group`));
  for (const part of [0, 0.5, 1]) chart.append(draw("text", { x: left - 6, y: y(part * most) + 4, "text-anchor": "end" }, part ? (part * most).toPrecision(2) : "0"));
  chart.append(draw("text", { x: 0, y: 12 }, `loss (${parameter})`));
  for (const row of rows) {
    const dot = draw("circle", { class: "dot", r: rows.length > 100 ? 3.5 : 5, cx: x(size(row)), cy: y(row.paid) });
    dot.append(draw("title", {}, `${labelOf(row, keys)}: ${number(row[name])}, paid ${row.paid.toPrecision(3)}`));
    chart.append(dot);
  }
  return [make("h3", title), chart];
}

// How far the last group is from its target, look by look, by powers of ten: at the line it is there.
export function closing(looks, wide) {
  const seen = looks.filter((one) => one.furthest && one.target).slice(-80).map((one) => [one.look, Math.log10(one.furthest / one.target)]);
  if (!seen.length) return [];
  const tall = 130, left = 62, top = 14, foot = tall - 34;
  const most = Math.max(1, Math.ceil(Math.max(...seen.map(([, power]) => power)))), first = seen[0][0], last = Math.max(seen.at(-1)[0], first + 1);
  const x = (look) => left + ((look - first) / (last - first)) * (wide - left - 16);
  const y = (power) => foot - (Math.max(0, power) / most) * (foot - top);
  const title = `How the interval closed in: ${seen.length} ${seen.length === 1 ? "look" : "looks"}, from ${short(10 ** seen[0][1])} times the target's width to ${short(10 ** seen.at(-1)[1])} times`;
  const chart = picture(wide, tall, title);
  for (let power = 0; power <= most; power += Math.ceil(most / 4)) chart.append(draw("text", { x: left - 6, y: y(power) + 4, "text-anchor": "end" }, power ? `× ${number(10 ** power)}` : "target"));
  chart.append(draw("line", { class: "aim", x1: left, x2: wide - 8, y1: foot, y2: foot }));
  const points = seen.map(([look, power]) => [x(look), y(power)]);
  const outline = [...points.map(([a, b]) => `${a},${b}`), `${points.at(-1)[0]},${foot}`, `${points[0][0]},${foot}`].join(" ");
  chart.append(draw("polygon", { class: "area", points: outline }));
  chart.append(draw("polyline", { class: "line", points: points.map(([a, b]) => `${a},${b}`).join(" ") }));
  chart.append(draw("circle", { class: "dot", r: 4, cx: points.at(-1)[0], cy: points.at(-1)[1] }));
  chart.append(draw("text", { x: (left + wide) / 2, y: tall - 6, "text-anchor": "middle" }, "look"));
  return [chart];
}
