// What owners and auditors see: people with their shares, data sets, and the books.

import { at, button, loss, make, meter, percent, short, show, square, table } from "./dom.js";

// A press asks first; a second press, or Escape, decides.
function asking(text, question, act) {
  const place = make("span", null, { class: "asking" });
  const first = button(text, () => {
    place.replaceChildren(yes, no);
    yes.focus();
  });
  const yes = button(question, async () => {
    yes.disabled = true;
    await act();
  });
  const back = () => {
    place.replaceChildren(first);
    first.focus();
  };
  const no = button("Cancel", back);
  place.addEventListener("keydown", (event) => { if (event.key === "Escape" && yes.isConnected) back(); });
  place.append(first);
  return place;
}

function freezing(may, frozen, whom, act) {
  if (!may) return frozen ? "frozen" : "open";
  const place = make("span", frozen ? "frozen " : "open ");
  place.append(frozen ? asking("Thaw", `Thaw ${whom}`, () => act("/v1/thaw")) : asking("Freeze", `Freeze ${whom}`, () => act("/v1/freeze")));
  return place;
}

function held(share) {
  const place = make("span", `${loss(share.spent)} of ${loss(share.share)}`, { class: "held" });
  const used = square(share.share) ? square(share.spent) / square(share.share) : 0;
  place.append(meter(used, 0, `${percent(used)} of the share is used`));
  return place;
}

export function people(everybody, sets, may, act) {
  const lines = everybody.flatMap((person) => {
    const seen = sets.filter((one) => person.role !== "analyst" || !one.askers || one.askers.includes(person.name));
    const until = person.until ? person.until.slice(0, 10) : "no end";
    const facts = [person.name, person.role, person.state === "good" ? until : person.state];
    if (person.role !== "analyst" || !seen.length) return [[...facts, seen.length ? "all" : "none", "–", "–"]];
    return seen.map((one) => [
      ...facts, one.name, person.shares[one.name] ? held(person.shares[one.name]) : "the whole budget",
      freezing(may, (one.frozen_analysts || []).includes(person.name), person.name, (path) => act(path, { dataset: one.name, analyst: person.name })),
    ]);
  });
  table(at("people"), "Who may ask what. A share is a part of the budget: all shares together draw on the one total.",
    [["name", false], ["role", false], ["token until", false], ["data set", false], ["spent of the share", false], ["charges", false]], lines);
}

export function dataSets(sets, may, act) {
  table(at("sets"), "What may be asked, and what is left of each budget",
    [["data set", false], ["protects", false], ["public groups", false], ["may ask", false], ["used", false], ["left", true], ["charges", false]],
    sets.map((one) => {
      const used = make("span", percent(one.used), { class: "held" });
      used.append(meter(one.used, 0, `${percent(one.used)} of the budget is used`));
      return [
        one.name, one.promised.who, one.keys.join(", ") || "none", one.askers ? one.askers.join(", ") : "every analyst",
        used, short(one.remaining.epsilon), freezing(may, Boolean(one.frozen), one.name, (path) => act(path, { dataset: one.name })),
      ];
    }));
}

export async function verify(sets, check, reason) {
  at("verified").replaceChildren(make("p", "Checking."));
  const lines = [];
  for (const one of sets) {
    try {
      const { head } = await check(one.name);
      lines.push(make("p", `${one.name}: the books agree with their entries, and their chain is whole. Its head, to note elsewhere: ${head}`));
    } catch (error) {
      lines.push(make("p", `${one.name}: ${reason(error)}`, { class: "problem" }));
    }
  }
  at("verified").replaceChildren(...lines);
  show("verified", true);
}
