// A question from clicks, and the accuracy that the slider names.

import { at, number, show } from "./dom.js";

const NAMES = { "COUNT(*)": "n", AVG: "mean", SUM: "total", MEDIAN: "middle", STDDEV: "spread" };

const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

function literal(kind, text) {
  if ((kind === "integer" || kind === "float") && text.trim() !== "" && Number.isFinite(Number(text))) return String(Number(text));
  const whole = `'${text.replaceAll("'", "''")}'`;
  return kind === "date" ? `DATE ${whole}` : kind === "timestamp" ? `TIMESTAMP ${whole}` : whole;
}

// The SQL of what was clicked, about one data set.
export function clicked(one) {
  const what = at("aggregate").value;
  const counts = what === "COUNT(*)";
  const filter = at("filter").value;
  for (const id of ["column-field", "lower-field", "upper-field"]) show(id, !counts);
  for (const id of ["compare-field", "against-field"]) show(id, filter !== "");
  const ends = `${Number(at("lower").value) || 0}, ${Number(at("upper").value) || 0}`;
  const inner = counts ? what : `${what}(CLAMP(${quoted(at("column").value)}, ${ends}))`;
  const group = at("group").value && quoted(at("group").value);
  const where = filter && at("against").value !== "" ? ` WHERE ${quoted(filter)} ${at("compare").value} ${literal(one.columns[filter], at("against").value)}` : "";
  return `SELECT ${group ? `${group}, ` : ""}${inner} AS ${NAMES[what]} FROM ${quoted(one.name)}${where}${group ? ` GROUP BY ${group}` : ""}`;
}

export const kindOf = (sql) => (/\b(MEDIAN|QUANTILE|PERCENTILE\w*|MIN|MAX)\s*\(/i.test(sql) ? "rank" : /\b(AVG|VAR\w*|STD\w*)\s*\(/i.test(sql) ? "mean" : "count");

// The target, by the slider: counts and sums relative, means in their unit, quantiles by rank. And how it is said.
export function target() {
  const sql = at("sql").value;
  const part = 0.5 * Math.pow(0.01, Number(at("accuracy").value) / 100);
  const rounded = Number(part.toPrecision(2));
  const confidence = Number(at("confidence").value);
  const clamps = /CLAMP\([^,]+,\s*(-?[\d.]+),\s*(-?[\d.]+)\)/i.exec(sql);
  const kind = kindOf(sql);
  show("absolute-field", kind !== "rank" && !(kind === "mean" && clamps));
  if (kind === "rank") return [{ rank: rounded, confidence }, `${number(100 * rounded)} % of rank`];
  if (kind === "mean") {
    const width = clamps ? Number(((Number(clamps[2]) - Number(clamps[1])) * part * 0.5).toPrecision(2)) : Number(at("absolute").value);
    return [{ absolute: width, relative: 0, confidence }, number(width)];
  }
  return [{ relative: rounded, absolute: Number(at("absolute").value) || 0, confidence }, `${number(100 * rounded)} %`];
}

// Two digits, and never narrower than it was.
export function rounded(width) {
  const step = 10 ** Math.floor(Math.log10(width) - 1);
  return Number((Math.ceil(width / step) * step).toPrecision(2));
}
