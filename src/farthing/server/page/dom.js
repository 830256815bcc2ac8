// Small pieces of the page. Whatever comes from the server is put in place as text, never as markup.

export const at = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

// Attributes in which no text is an address, a script or a style: no others are ever set.
const HARMLESS = new Set(("type class scope role aria-label aria-valuetext title value d r x y x1 x2 y1 y2 cx cy width height viewBox points fill " +
  "text-anchor preserveAspectRatio").split(" "));

export function mark(node, facts) {
  for (const [name, value] of Object.entries(facts)) {
    if (!HARMLESS.has(name)) throw new Error(`the attribute ${name} is not set by this page`);
    node.setAttribute(name, value);
  }
  return node;
}

export function make(kind, text, facts = {}) {
  const node = document.createElement(kind);
  if (text !== undefined && text !== null) node.textContent = String(text);
  return mark(node, facts);
}

export function draw(kind, facts, text) {
  const node = document.createElementNS(SVG, kind);
  if (text !== undefined) node.textContent = String(text);
  return mark(node, facts);
}

export function show(id, visible) { at(id).hidden = !visible; }

export function say(id, text) {
  at(id).textContent = text;
  show(id, Boolean(text));
}

export function fill(select, pairs) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", text, { value })));
}

export function button(text, act) {
  const node = make("button", text, { type: "button", class: "quiet" });
  node.addEventListener("click", act);
  return node;
}

export function number(x) {
  if (x === null || x === undefined) return "–";
  if (typeof x !== "number") return String(x);
  const digits = Math.abs(x) >= 1000 ? 0 : Math.abs(x) >= 1 ? 2 : 4;
  return x.toLocaleString("en", { maximumFractionDigits: digits });
}

// As many digits as the interval is worth.
export function near(x, row, name) {
  const width = row[`${name}_upper`] - row[`${name}_lower`];
  if (!(width > 0) || typeof x !== "number") return number(x);
  const digits = Math.min(6, Math.max(0, 2 - Math.ceil(Math.log10(width / 2))));
  return x.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits }).replace(/^-(?=[0.]*$)/, "");
}

export const short = (x) => (Number(x) === 0 ? "0" : Math.abs(x) < 1e-3 ? "below 0.001" : Number(x).toPrecision(3));

export function loss(facts) { return facts ? `epsilon ${short(facts.epsilon)}` : "–"; }

export const percent = (part) => (part > 0 && part < 0.001 ? "below 0.1 %" : `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`);

// What adds up: a part of a budget is a part of its square in mu, of rho, or of a pure epsilon.
export const square = (facts) => (facts.mu === undefined ? (facts.rho ?? facts.epsilon) : facts.mu ** 2);

// A table; a cell is a text or a node. `head` has [name, whether its column holds numbers].
export function table(node, caption, head, lines) {
  const row = (cells, kind) => {
    const line = make("tr");
    cells.forEach((cell, k) => {
      const facts = { ...(head[k][1] ? { class: "number" } : {}), ...(kind === "th" ? { scope: "col" } : {}) };
      const made = make(kind, cell instanceof Node ? null : cell, facts);
      if (cell instanceof Node) made.append(cell);
      line.append(made);
    });
    return line;
  };
  const top = make("thead"), body = make("tbody");
  top.append(row(head.map(([name]) => name), "th"));
  body.append(...lines.map((line) => row(line, "td")));
  node.replaceChildren(make("caption", caption), top, body);
}

// How much of something is used, and how much a question would take at most.
export function meter(used, more, text) {
  const shown = draw("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "meter", role: "img", "aria-label": text });
  const end = Math.min(1, Math.max(0, used)) * 100;
  shown.append(draw("rect", { class: "left", x: 0, y: 0, width: 100, height: 8 }));
  shown.append(draw("rect", { class: "would", x: end, y: 0, width: Math.min(100 - end, 100 * more), height: 8 }));
  shown.append(draw("rect", { class: "used", x: 0, y: 0, width: end, height: 8 }));
  return shown;
}
