// The guarantee in words that need no mathematics. The numbers are bounds: they are rounded up.

import { make } from "./dom.js";

const ALARMS = 5; // in 100: how often somebody who must decide may be wrong

// Of 100 times that a unit is there: how often a test that cries wolf 5 times in 100 can notice it, at most.
export function noticed({ epsilon, delta }) {
  return Math.min(100, Math.ceil(10 * (Math.exp(epsilon) * ALARMS + 100 * delta)) / 10);
}

export function promise(one) {
  const { who, epsilon, delta } = one.promised;
  const facts = [
    ["Who is protected", `${who[0].toUpperCase()}${who.slice(1)}: whether it is in the data or not, nobody can tell with much confidence.` +
      (who === "one row" ? " A person with several rows is protected for each of them, and less for all of them together." : "")],
    ["How well", `Suppose that somebody has to decide, from everything that was ever answered here, whether ${who} is in the data, and is wrong at most ${ALARMS} times in 100 where it is not. ` +
      `Then they notice it at most ${noticed(one.promised)} times in 100 where it is. Without any answer it would be ${ALARMS} times in 100.`],
    ["Against whom", "Against everybody who sees answers, whatever else they know, however many of them put their answers together, now and later, and with any computer."],
    ["How it is kept", "Random noise is added to each answer. The price of an answer is booked before it is computed, in books that can be checked, and a question that does not fit in what is left is not answered. " +
      "Asking the same question again gives the same answer."],
    ["What is not promised", "An answer may tell much about everybody at once, as any statistic does, and so about a person who is like the others. How long an answer takes is not hidden. " +
      "Whoever runs the server can read the data. An interval misses the true number as often as its confidence says."],
    ["In the words of the literature", `${one.promise}: (epsilon, delta)-differential privacy with epsilon ${Number(epsilon).toPrecision(4)} and delta ${delta}.`],
  ];
  return facts.flatMap(([name, words]) => [make("dt", name), make("dd", words)]);
}
