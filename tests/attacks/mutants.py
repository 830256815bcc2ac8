"""Hand-written bugs of farthing: each an edit of its source, and the checks that must see it.

Groups: NOISE draws, NUMBERS the size of what is drawn and told, BOUNDS what a unit can move, PRICES what is charged,
BOOKS what the ledger keeps and refuses, DOORS ways to rows and to exact numbers, EDGES how files come in, how text goes
out, what one odd row does, and whom an attack calls guilty, CHAINS what several answers of a question promise and cost,
PLANS what is planned, told and refused, RELEASES many tables at once, FORMULAS arithmetic over aggregates, and what
has several measures under a pure budget, SHARES shares of a total. Which promise each breaks: `promises`.

An edit names the exact old text: where the source moved on, it fails loudly, and the list is brought up to date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.

    Attributes:
        name: what it is.
        file: below src/farthing.
        edits: (old text, new text) pairs; each old text is there exactly once.
        checks: names of `mutant_checks.CHECKS`, cheapest first; one of them has to fail.
    """

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    checks: tuple[str, ...]

    def applied(self, source: Path) -> str:
        """Return the file's text with the bug in it.

        Raises:
            LookupError: an old text is not there, or not once.
        """
        text = (source / self.file).read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise LookupError(f"{self.name}: {text.count(old)} times in {self.file}, not once: {old!r}")
            text = text.replace(old, new)
        return text


def _one(name: str, file: str, old: str, new: str, *checks: str) -> Mutant:
    """Return a mutant of one edit."""
    return Mutant(name, file, ((old, new),), checks)


NOISE = (
    _one(
        "half the sigma",
        "mechanisms/gaussian.py",
        "sensitivity * 2.0**28 /",
        "sensitivity * 2.0**27 /",
        "count",
    ),
    _one(
        "twice the rate of geometric noise",
        "mechanisms/laplace.py",
        "farthings * float(FARTHING) / sensitivity, 0.0)",
        "2 * farthings * float(FARTHING) / sensitivity, 0.0)",
        "geometric",
    ),
    _one(
        "half the noise of the asinh mechanism",
        "mechanisms/transformed.py",
        "math.ldexp(self.sigma, -self.grid_log2),",
        "math.ldexp(self.sigma / 2, -self.grid_log2),",
        "asinh",
    ),
    _one(
        "a seed for the noise",
        "noise/bits.py",
        "self._start(os.urandom(32) if key is None else key)",
        "self._start(bytes(32) if key is None else key)",
        "forks",
    ),
    _one(
        "the same bits after a fork",
        "noise/bits.py",
        "elif count > self._left or self._process != _this_process():",
        "elif count > self._left:",
        "forks",
    ),
    _one(
        "noise in floating point on top",
        "mechanisms/gaussian.py",
        "return np.ldexp(self.mean.astype(np.float64), self.unit_log2)",
        "return np.ldexp(self.mean.astype(np.float64), self.unit_log2) + np.random.default_rng().normal(0, 1e-3, "
        "self.mean.shape)",
        "grid",
    ),
    _one(
        "the finer noise of a chain drawn again",
        "noise/gradual.py",
        "    if before.all():\n        return _given(noise, coarse, rates, bits)\n",
        "    if before.all():\n        return two_sided_geometric(rates, len(noise), bits)\n",
        "chain",
    ),
    _one(
        "neighbouring groups share noise",
        "mechanisms/gaussian.py",
        "    return whole + noisy, exponent\n",
        "    return whole + np.repeat(noisy[::2], 2)[: len(noisy)], exponent\n",
        "independent",
    ),
)

NUMBERS = (
    _one(
        "the unit of the first look does not follow the range",
        "mechanisms/gaussian.py",
        "NO_UNIT: Final = 1 << 14",
        "NO_UNIT: Final = 0",
        "numbers",
    ),
    _one(
        "rows on the coarse grid before they are added",
        "query/ranges.py",
        "FINE_BITS: Final = 16",
        "FINE_BITS: Final = 1",
        "repeated",
    ),
    _one(
        "the ends of a quantile's leaf as float64 rounds them",
        "accuracy/quantile_ranks.py",
        "* 2.0**-49, 5e-324)",
        "* 0.0, 0.0)",
        "edges",
    ),
    _one(
        "a whole number told as where the next one begins",
        "accuracy/quantile_ranks.py",
        "        if self.whole:\n            return self.least(leaf)\n",
        "",
        "edges",
    ),
    _one(
        "whole numbers put on steps of their range",
        "query/aggregates.py",
        "return float(1 << self.leaves_log2) if self.whole else self.upper - self.lower",
        "return self.upper - self.lower",
        "edges",
    ),
    _one(
        "decimals told apart as whole numbers",
        "query/aggregates.py",
        "whole = kind is Type.INTEGER and not lower",
        "whole = not lower",
        "edges",
    ),
    _one(
        "scores rounded to floats",
        "mechanisms/stopping.py",
        "return operator.index(score)",
        "return float(score)",
        "edges",
    ),
    _one(
        "a relative error that is tried at few sizes only",
        "mechanisms/relative_error.py",
        "        root -= over + 1e-6\n",
        "        root -= 0.0\n",
        "edges",
    ),
    _one(
        "a total whose cells are not rounded to steps",
        "engines/duck/measures.py",
        "(({above}) >> {FINE_BITS}) - {_ABOVE >> FINE_BITS}::HUGEINT)::BIGINT",
        "({above}) - {_ABOVE + (1 << (FINE_BITS - 1))}::HUGEINT)::BIGINT",
        "numbers",
    ),
)

BOUNDS = (
    _one(
        "no clamp of values",
        "engines/duck/cells.py",
        '    return (\n        f"CASE WHEN {x.double} BETWEEN {double(lower)} AND {double(upper)} THEN {inside} "\n',
        '    return (\n        f"CASE WHEN {x.double} BETWEEN -1e15 AND 1e15 THEN {inside} "\n',
        "bounded",
    ),
    _one(
        "NULL adds the lower clamp",
        "engines/duck/cells.py",
        "WHEN {x.double} <= {INFINITY} THEN {beyond[1]} END",
        "WHEN {x.double} <= {INFINITY} THEN {beyond[1]} ELSE {beyond[0]} END",
        "bounded",
    ),
    _one(
        "NaN adds the upper clamp",
        "engines/duck/cells.py",
        "WHEN {x.double} <= {INFINITY} THEN {beyond[1]} END",
        "WHEN {x.double} > {double(upper)} THEN {beyond[1]} END",
        "bounded",
    ),
    _one(
        "squares not re-centred by the engine",
        "engines/duck/cells.py",
        '        power = f"({power} - {double(total.less)})" if total.less else power\n',
        "",
        "bounded",
    ),
    _one(
        "max_groups forgotten by the engine",
        "engines/duck/measures.py",
        '    if query.max_groups is not None:\n        kept = f"SELECT * FROM ({kept}) QUALIFY',
        '    if False:\n        kept = f"SELECT * FROM ({kept}) QUALIFY',
        "bounded",
    ),
    _one(
        "max_groups forgotten in the price",
        "planning/gaussian_count.py",
        "return Coin(frame.gaussian, query.max_groups, query.sensitivity * query.measures[0].step)",
        "return Coin(frame.gaussian, 1, query.sensitivity * query.measures[0].step)",
        "accounts",
    ),
    _one(
        "max_rows forgotten by the engine",
        "engines/duck/measures.py",
        'return f"least({_count(query, rows, cells, value)}, {most})"',
        "return _count(query, rows, cells, value)",
        "bounded",
    ),
    _one(
        "max_rows forgotten in sums",
        "engines/duck/measures.py",
        'cut = f"CASE WHEN {n} <= {most} THEN {s} ELSE {down} END"',
        "cut = s",
        "bounded",
    ),
    _one(
        "max_rows forgotten in the sensitivity of counts",
        "query/measures.py",
        "        return max_rows\n",
        "        return 1\n",
        "accounts",
        "corpus",
    ),
    _one(
        "max_rows forgotten in quantiles",
        "engines/duck/measures.py",
        "least(c, {query.max_rows} - ({before})) AS c",
        "c AS c",
        "bounded",
    ),
    _one(
        "max_rows forgotten in counts of values",
        "engines/duck/measures.py",
        'first}) <= {query.max_rows}"',
        'first}) > 0"',
        "bounded",
    ),
    _one(
        "the smaller clamp as sensitivity",
        "query/measures.py",
        "largest = max(abs(self.lower - self.centre), abs(self.upper - self.centre))",
        "largest = min(abs(self.lower - self.centre), abs(self.upper - self.centre)) or 1.0",
        "accounts",
    ),
    _one(
        "a unit counts in each of its parts",
        "engines/duck/cells.py",
        'kept = f"p = home AND p = {self._home.place} AND',
        'kept = f"p = {self._home.place} AND',
        "bounded",
    ),
    _one(
        "the part of a unit chosen after joins",
        "engines/bounded.py",
        "steps=(*_home(query), *query.joins, KeepWhere(query.rows)),",
        "steps=(*query.joins, *_home(query), KeepWhere(query.rows)),",
        "bounded",
    ),
    _one(
        "every ledger has the same hash key",
        "ledger/shaping.py",
        '"hash_key": secrets.token_bytes(8),',
        '"hash_key": bytes(8),',
        "bounded",
    ),
)

PRICES = (
    _one(
        "a choice smoothed by more than is left",
        "privacy/residue.py",
        "1 / (90 * kappa + Fraction(9, 2))",
        "1 / (900 * kappa + Fraction(9, 2))",
        "choices",
    ),
    _one(
        "a choice priced by what was left before it",
        "privacy/residue.py",
        "price = choice_price(eta, left - price)",
        "price = choice_price(eta, left)",
        "choices",
    ),
    _one(
        "the last of several choices at the price of the others",
        "privacy/residue.py",
        "again = choice_price(eta, total)",
        'again = choice_price(eta, total + exact(eta, "eta") ** 2)',
        "choices",
    ),
    _one(
        "settled below use",
        "session/core/transaction.py",
        "(price.farthings, lambda current",
        "(price.farthings // 2, lambda current",
        "books",
        "accounts",
    ),
    _one(
        "the price of Gaussian noise in zCDP halved",
        "mechanisms/gaussian.py",
        "else Zcdp.of_amount(mu_squared / 2)",
        "else Zcdp.of_amount(mu_squared / 4)",
        "accounts",
    ),
    _one(
        "a chain charged less than its last look",
        "session/answering/laplace_count.py",
        "outcome = self._outcome(plan, after, price(after.information), after",
        "outcome = self._outcome(plan, after, price(after.information) // 2, after",
        "geometric",
    ),
    _one(
        "a mean charged for one of its measures",
        "accuracy/joint_state.py",
        "return np.asarray(self.information.sum(axis=0), dtype=np.int64)",
        "return np.asarray(self.information[0], dtype=np.int64)",
        "mean",
        "two at once",
    ),
    _one(
        "several aggregates charged for the most expensive",
        "accuracy/joint_state.py",
        "return np.asarray(self.information.sum(axis=0), dtype=np.int64)",
        "return np.asarray(self.information.max(axis=0), dtype=np.int64)",
        "two at once",
    ),
    _one(
        "a look at several ranks booked as one of them",
        "mechanisms/joint_ranks.py",
        "for column in self.matrix.T)",
        "for column in self.matrix[-1:].T)",
        "several ranks",
    ),
    _one(
        "rows of a unit between two thresholds priced as one",
        "mechanisms/joint_ranks.py",
        "sigma = self.reach * strategy.length",
        "sigma = strategy.length",
        "several ranks",
    ),
    _one(
        "looks of a search for a quantile booked too little",
        "accuracy/quantile_trail.py",
        "        self.paid[groups] += ranks[1] + counts[1]\n",
        "        self.paid[groups] += (ranks[1] + counts[1]) // 2\n",
        "searched",
    ),
    _one(
        "a quantile's bets told as won too early",
        "accuracy/quantile_rank_run.py",
        "        return -float(np.log(chance)) if chance else np.inf\n",
        "        return -float(np.log(chance)) / 4 if chance else np.inf\n",
        "beside a step",
    ),
    _one(
        "a quantile's bets that win what they need more often than their chance",
        "accuracy/quantile_bets.py",
        "    mean_at_most = np.sqrt(surely)",
        "    mean_at_most = 2 * np.sqrt(surely)",
        "beside a step",
    ),
    _one(
        "how far a threshold is off chosen after the looks that prove it",
        "accuracy/quantile_value_bets.py",
        "            rate = np.where(most > 0, bet.rate[some], 0.0)",
        "            rate = np.where(most > 0, np.maximum(-mine * mean[some], 0.0), 0.0)",
        "sides at the edge",
    ),
    _one(
        "looks at several quantiles booked without their counts",
        "accuracy/joint_quantile_run.py",
        "        self.paid[groups] += grains + rows\n",
        "        self.paid[groups] += grains\n",
        "searched together",
    ),
    _one(
        "a round of bins charged less than it rose",
        "accuracy/joint_chain_run.py",
        "        trail.paid[at] += LEVELS[level] - ahead.farthings\n",
        "        trail.paid[at] += (LEVELS[level] - ahead.farthings) // 2\n",
        "pure quantiles together",
    ),
    _one(
        "a round of bins carried on between other thresholds",
        "accuracy/joint_chain_shown.py",
        "np.where(begins, wish.places, places)",
        "wish.places",
        "pure quantiles together",
    ),
    _one(
        "the chains of several pure quantiles carried on by two",
        "session/answering/joint_chains.py",
        "        if not receipt.exclusive:\n",
        "        if False:\n",
        "pure quantiles together",
    ),
    _one(
        "a look at several quantiles told as nine of it",
        "accuracy/joint_quantile_run.py",
        "np.floor(told[:, place] / run.plan.per_grain)",
        "np.floor(9 * told[:, place] / run.plan.per_grain)",
        "several beside a step",
    ),
    _one(
        "a choice of a quantile at twice its epsilon",
        "session/answering/quantile.py",
        "value = quantile.values(quantile.choose(ranks, pricing.most))",
        "value = quantile.values(quantile.choose(ranks, 2 * pricing.most))",
        "exponential",
    ),
    _one(
        "k choices charged as one",
        "mechanisms/top_k.py",
        "return repeated(one, self.k, currency)",
        "return repeated(one, 1, currency)",
        "accounts",
    ),
    _one(
        "k choices charged as one in a pure ledger",
        "mechanisms/top_k.py",
        "return restated(one if isinstance(one, Gdp) else one * self.k, currency)",
        "return restated(one, currency)",
        "accounts",
    ),
    _one(
        "the stop of a choice not charged",
        "session/choosing/top_k.py",
        "rule.price(currency, made.peels))",
        "rule.price(currency, len(made.places)))",
        "accounts",
    ),
    _one(
        "the threshold of keys lowered",
        "mechanisms/keys.py",
        "threshold = max(1.0, 1 + hide * sigma)",
        "threshold = max(1.0, hide * sigma)",
        "keys",
    ),
    _one(
        "places settled by half the lead that it takes",
        "mechanisms/leads.py",
        "else -math.log(share)",
        "else -math.log(share) / 2",
        "settled",
    ),
    _one(
        "only as many runs made as count",
        "mechanisms/best_of_many.py",
        "for _ in range(self.runs)]",
        "for _ in range(self._drawn(bits))]",
        "best of many",
    ),
    _one(
        "the error of a candidate passed on",
        "mechanisms/best_of_many.py",
        "    except KeyboardInterrupt:\n        stopped = True\n",
        "    except Exception:\n        raise\n",
        "best of many",
    ),
    _one(
        "many runs at the price of one",
        "mechanisms/best_of_many.py",
        "offers.append(restated(Pure(candidate.amount * (2 + self.shape)), currency))",
        "offers.append(restated(Pure(candidate.amount), currency))",
        "best of many",
    ),
    _one(
        "a joint choice at the range of one score",
        "mechanisms/joint_top_k.py",
        "(1 + TAKEN) * spread_of(",
        "spread_of(",
        "joint choice",
    ),
    _one(
        "a gap that proves what half of it would",
        "mechanisms/threshold.py",
        "- math.log(1 - confidence)) / self.rate",
        "- math.log(1 - confidence) / 2) / self.rate",
        "gaps",
    ),
    _one(
        "a score of a run that moves both ways at the noise of one way",
        "mechanisms/threshold.py",
        "rate_of(epsilon * (1 - share), spread_of(self.sensitivity, monotone=self.monotone)),",
        "rate_of(epsilon * (1 - share), spread_of(self.sensitivity, monotone=True)),",
        "gaps",
    ),
    _one(
        "a stop of a reduced run at the share of its threshold",
        "mechanisms/reduced_threshold.py",
        "return min(1.0, max(bar, *means))",
        "return bar",
        "reduced",
    ),
    _one(
        "every place of a ranking at the whole of beta",
        "accuracy/ranking_chances.py",
        "return np.maximum(found + total, 0.0)",
        "return np.zeros(len(self.place))",
        "leads",
    ),
    _one(
        "a lead proved at each look as if it were the only one",
        "accuracy/ranking_bounds.py",
        "return np.asarray(sums / information)",
        "return np.sqrt(-4 * np.log(2 * chances) / information)",
        "leads",
    ),
    _one(
        "half the noise in the lead of two groups",
        "mechanisms/gaussian.py",
        "on_own_grid(truth[first] - truth[second], sigma_of(grains, self.sensitivity), self.bits)",
        "on_own_grid(truth[first] - truth[second], sigma_of(4 * grains, self.sensitivity), self.bits)",
        "lead of two",
    ),
    _one(
        "the lead of two groups not charged",
        "accuracy/ranking.py",
        "return np.asarray(self.held + self.pilot_grains)",
        "return np.asarray(self.information + self.pilot_grains)",
        "lead of two",
    ),
    _one(
        "the lead of two groups where a unit may move it twice",
        "session/choosing/ranking_noise.py",
        "one_way = query.max_groups == 1 or isinstance(query.aggregate, Count | CountUnits)",
        "one_way = True",
        "lead of two",
    ),
    _one(
        "the lead of two groups as if it were known four times as well",
        "accuracy/ranking.py",
        "return np.asarray(self.information + self.lead_information)",
        "return np.asarray(self.information + 4 * self.lead_information)",
        "lead of two",
    ),
    _one(
        "groups beside a core judged as if their leads were measured",
        "accuracy/ranking_places.py",
        "for grains in (by_leads[1], alone[1]))",
        "for grains in (by_leads[1], by_leads[1]))",
        "lead of two",
    ),
    _one(
        "a ranking that is begun again at the whole of beta",
        "accuracy/ranking.py",
        "return _LATER / 2.0**line if line else 1 - _LATER",
        "return 1.0",
        "lines of a ranking",
    ),
    _one(
        "a ranking that was not kept not counted",
        "session/choosing/ranking.py",
        "return blob if kept.lines >= ours.lines else blob_of(replace(kept, lines=ours.lines))",
        "return blob",
        "lines of a ranking",
    ),
    _one(
        "the limit of a ranking by leads after its last place",
        "limits/ranking.py",
        "leads = (ranked[:-1] - ranked[1:])[:k]",
        "leads = ranked[:-1] - ranked[1:]",
        "ranking limit",
    ),
    _one(
        "the limit of a ranking by the rows that only make a tie",
        "limits/ranking.py",
        "moved = int(leads[leads > 0].min()) + 1",
        "moved = int(leads[leads > 0].min())",
        "ranking limit",
    ),
    _one(
        "the limit of a relative target without what its misses are worth",
        "limits/any_rule.py",
        "worth * unseen) - worth * beta",
        "worth * unseen)",
        "limits of any rule",
    ),
    _one(
        "the limit of answers at half of their misses",
        "limits/any_rule.py",
        "return float(ndtri(beta / 2)) ** 2",
        "return float(ndtri(beta / 4)) ** 2",
        "limits of any rule",
    ),
    _one(
        "the limit of a search by a lump that leaves other leaves right",
        "limits/quantiles.py",
        "below, upto = math.ceil(low) - 1, math.floor(high) + 1",
        "below, upto = math.ceil(low), math.floor(high)",
        "limits of any rule",
    ),
    _one(
        "the limit of a threshold by rows that leave a leaf above it right",
        "limits/quantiles.py",
        "fewer = np.maximum(short // gone + 1, 0)",
        "fewer = np.maximum(short // gone, 0)",
        "limits of any rule",
    ),
    _one(
        "the limit of several leads as if one group paid for all",
        "limits/ranking_leads.py",
        "diagonal.sum()",
        "diagonal.max()",
        "ranking limit",
    ),
    _one(
        "the limit of a lead of unknown size without what errors are worth",
        "limits/ranking_sizes.py",
        " - beta * (wrong + missed)",
        "",
        "ranking limit",
    ),
    _one(
        "units of few groups as large as the price allows",
        "mechanisms/keys.py",
        "min(math.isqrt(max_groups * ONE * ONE // groups), math.floor(free))",
        "math.isqrt(max_groups * ONE * ONE // groups)",
        "keys",
    ),
    _one(
        "keys from the data",
        "session/answering/private_keys.py",
        "told = np.flatnonzero(self.search.rule.found(there.units))",
        "told = np.arange(len(there.units))",
        "keys",
    ),
    _one(
        "the delta of a search not booked",
        "session/answering/private_keys.py",
        "            self.search.rule.delta_coins,\n",
        "            0,\n",
        "accounts",
    ),
    _one(
        "the delta of a choice not booked",
        "session/choosing/top_k.py",
        "self.target, self.price.delta,",
        "self.target, 0,",
        "accounts",
    ),
    _one(
        "the search for keys not in the price",
        "session/answering/private_keys.py",
        "return (table, self.search.price), self.search.price",
        "return (table, self.context.loss(0)), self.search.price",
        "accounts",
    ),
    _one(
        "a report on bounds free of charge",
        "session/answering/contribution_report.py",
        "        return (spread, self.price), self.price",
        "        return (spread, self.price), self.context.loss(0)",
        "accounts",
    ),
    _one(
        "chosen bounds not in the price that is told",
        "session/questions/pipeline.py",
        "whole = replace(answer, paid=answer.paid + paid) if paid else answer",
        "whole = answer",
        "accounts",
    ),
    _one(
        "parts at their minimum",
        "ledger/accounts.py",
        "return max(self.others, self.own + amount) - max(self.others, self.own)",
        "return min(self.others, self.own + amount) - min(self.others, self.own)",
        "accounts",
    ),
    _one(
        "losses by group from the private counts",
        "session/answering/relative_count.py",
        "        made = _outcome(one, pricing, plan.worst_price, blob_of({receipt.id: one}))\n",
        "        from dataclasses import replace\n"
        "        made = _outcome(one, pricing, plan.worst_price, blob_of({receipt.id: one}))\n"
        "        counts = context.engine.measure(self.query, receipt)[0]\n"
        "        made = replace(made, paid=one.noise.policy.mu(counts), strict=one.noise.policy.mu(counts))\n",
        "accounts",
    ),
)

CHARGED_LATER = """        from farthing.ledger.entry import Receipt
        bill, question = self._bill, self._question
        receipt = Receipt(0, "", bill.increase.farthings, question, version, exclusive=True)
"""
RESERVED = "        receipt = self._receipt = self._reserved(version)\n"
MEASURED = "            answer, price = shielded(step.measured, receipt)\n"

BOOKS = (
    _one(
        "a refund on error",
        "session/core/transaction.py",
        "                ledger.fail(receipt, interrupted=not self._failed)\n",
        "                ledger.settle(receipt, 0, None)\n",
        "books",
        "failing",
    ),
    _one(
        "nothing closed on an error",
        "session/core/transaction.py",
        "            if not self.ended():\n                _OWED[self._request] = self\n",
        "            pass\n",
        "left open",
    ),
    _one(
        "a damaged table charged again and again",
        "session/core/refused.py",
        "    if failed >= MOST_FAILURES:\n",
        "    if False:\n",
        "drained",
    ),
    _one(
        "two askers at once, both charged",
        "session/core/transaction.py",
        "alone=alone)",
        "alone=False)",
        "twice",
    ),
    _one(
        "a failed ask refunded by the ledger",
        "ledger/booking.py",
        "amount=row.allowed, stored=word",
        "amount=0, stored=word",
        "books",
    ),
    _one(
        "another file under the same version",
        "ledger/data.py",
        "        if recorded is not None and recorded != self.mark:\n",
        "        if recorded is None and self.mark is None:\n",
        "faults",
    ),
    _one(
        "a file that changes while a session is open",
        "ledger/data.py",
        "        if _mark(self.name, self.salt, self.identity()) != self.mark:\n",
        "        if _mark(self.name, self.salt, self.identity()) is None:\n",
        "faults",
    ),
    _one(
        "a question's version left out of its identity",
        "session/facade.py",
        "self._unit.label, str(version)]",
        "self._unit.label]",
        "faults",
    ),
    _one(
        "the hash of the totals not checked",
        "ledger/chain.py",
        '        if row.seal != link(str(row.head), "totals", facts):\n',
        '        if row.seal != (link(str(row.head), "totals", facts) and row.seal):\n',
        "faults",
    ),
    _one(
        "the hash of a measurement not checked",
        "ledger/rows.py",
        "row.digest != sealed_measurement(question, stored):",
        "row.digest == sealed_measurement(question, stored) != row.digest:",
        "faults",
    ),
    _one(
        "stored groups left without tags",
        "session/core/tags.py",
        "    return Tags(tuple(sorted(set(tags))), rank, len(keys), _bits(tags))\n",
        "    return NONE\n",
        "known",
    ),
    _one(
        "a tag for the first group only",
        "session/core/tags.py",
        "    return Tags(tuple(sorted(set(tags))), rank,",
        "    return Tags((tags[0],), rank,",
        "known",
    ),
    _one(
        "the bits of the last group only",
        "session/core/tags.py",
        "        bits |= 1 << tag % _BITS\n",
        "        bits = 1 << tag % _BITS\n",
        "known",
    ),
    _one(
        "what is sought hashed without its family",
        "session/core/tags.py",
        "    some = _tags(family, keys",
        '    some = _tags("", keys',
        "known",
    ),
    _one(
        "stored questions that hold fewer groups left in, those that hold more left out",
        "ledger/tags.py",
        ".where(_tagged.c.groups >= sa",
        ".where(_tagged.c.groups <= sa",
        "known",
    ),
    _one(
        "the witness not written",
        "ledger/books.py",
        "        if advanced is not None and self.identity:\n",
        "        if advanced is None and self.identity:\n",
        "faults",
    ),
    _one(
        "the witness written before the commit",
        "ledger/books.py",
        "                    self._note(connection, mine)\n",
        "                        self._note(connection, mine)\n",
        "faults",
    ),
    _one(
        "hopeless questions paid",
        "session/answering/one_question.py",
        "    if made.hopeless and not spend:",
        "    if made.hopeless and spend is None:",
        "hopeless",
    ),
    _one(
        "a cap that does not count what stands",
        "session/answering/one_question.py",
        "    if most > frame.cap.farthings + 1:",
        "    if most < 0:",
        "caps",
    ),
    _one(
        "what rounding leaves asked with",
        "session/answering/one_question.py",
        "    began = began.of_leavings if stored is None else began\n",
        "",
        "caps",
    ),
    Mutant(
        "charged after the answer",
        "session/core/transaction.py",
        ((RESERVED, CHARGED_LATER), (MEASURED, MEASURED + "    " + RESERVED)),
        ("books",),
    ),
    _one(
        "the budget not asked",
        "ledger/rules.py",
        "    if amount > least.room:\n",
        "    if amount > least.limit:\n",
        "books",
    ),
    _one(
        "the budget passed by rounding",
        "ledger/rules.py",
        "    if amount > least.room:\n",
        "    if amount >> 20 > least.room >> 20:\n",
        "accounts",
    ),
    _one(
        "the delta of keys not asked",
        "ledger/rules.py",
        "if delta < 0 or spent + delta > terms.keys_delta:",
        "if delta < 0 or delta > terms.keys_delta:",
        "accounts",
    ),
    _one(
        "the predicate left out of a question's identity",
        "query/query.py",
        "        columns, rows = (self.by, self.rows) if by is None else (by, self._rows(where))\n",
        "        columns, rows = (self.by, None) if by is None else (by, None)\n",
        "independent",
        "bounded",
    ),
    _one(
        "the aggregate left out of a question's identity",
        "query/query.py",
        '                "; ".join(output.aggregate.canonical() for output in self.outputs),\n',
        "",
        "bounded",
        "accounts",
    ),
)

DOORS = (
    Mutant(
        "the engine's words in an error",
        "engines/duck/engine.py",
        (
            ("stopped = _is_interrupt(error)", "said, stopped = str(error), _is_interrupt(error)"),
            (
                "        raise engine_failed()  # outside",
                "        raise DataError(said, rule='', next_step='')  # outside",
            ),
        ),
        ("failing",),
    ),
    _one(
        "rows read free of charge",
        "session/core/door.py",
        "        if not patiently(lambda: self._ledger.stands(receipt)):\n",
        "        if self._ledger.stands(receipt) is None:\n",
        "door",
    ),
    _one(
        "exact numbers in the frames of an error",
        "session/core/shield.py",
        "    raise _bare(problem)\n",
        "    raise problem\n",
        "frames",
    ),
    _one(
        "exact numbers above a callback",
        "mechanisms/gaussian.py",
        'object.__setattr__(self, "truth", sealed(self.truth))',
        'object.__setattr__(self, "truth", self.truth)',
        "frames",
    ),
    _one(
        "arithmetic that can overflow",
        "engines/duck/functions.py",
        'return f"greatest(TRY_CAST({wide} AS BIGINT))"',
        'return f"CAST({wide} AS BIGINT)"',
        "errors",
    ),
    _one(
        "a cast that can fail",
        "engines/duck/functions.py",
        'parsed = f"TRY_CAST({x.sql} AS {native})"',
        'parsed = f"CAST({x.sql} AS {native})"',
        "errors",
    ),
    _one(
        "the first of several statements",
        "sql/text.py",
        "    if len(trees) != 1:\n",
        "    if not trees:\n",
        "escapes",
    ),
    _one(
        "files open to the engine",
        "engines/duck/database.py",
        '        connection.execute("SET enable_external_access = false")\n',
        "",
        "lockdown",
    ),
    _one(
        "settings open to the engine",
        "engines/duck/database.py",
        '        connection.execute("SET lock_configuration = true")\n',
        "",
        "lockdown",
    ),
)

EDGES = (
    _one(
        "lines that are not records kept in a CSV",
        "engines/reading/lines.py",
        "    bad[np.searchsorted(ends, np.concatenate(strange))] = True\n",
        "",
        "lines",
    ),
    _one(
        "quotes out of place kept in a CSV",
        "engines/reading/lines.py",
        "= places[wrong]",
        "= places[:0]",
        "lines",
    ),
    _one(
        "types of a CSV guessed from its lines",
        "engines/reading/records.py",
        "column_types=dict.fromkeys(names, pa.string()),",
        "column_types={},",
        "lines",
    ),
    _one(
        "dates of a CSV in whichever form fits",
        "engines/reading/records.py",
        "TRY_STRPTIME({column}, '{escaped}')",
        "TRY_STRPTIME({column}, ['{escaped}', '%m/%d/%Y'])",
        "lines",
    ),
    _one(
        "a CSV read although nothing says how",
        "engines/reading/declared.py",
        "if isinstance(table, str | Path) and is_csv(str(table)):",
        "if not isinstance(table, str | Path):",
        "undeclared",
    ),
    _one(
        "a protected table made public by another spelling of its address",
        "engines/addresses.py",
        "if (known | {SYSTEM}) & marks:",
        "if public[name] in {source for _, source in private}:",
        "spelled",
    ),
    _one(
        "a protected file made public by an address that reads it",
        "engines/addresses.py",
        "        self._refuse_files(protected, public)\n",
        "",
        "spelled",
    ),
    _one(
        "two relations of one connection read side by side",
        "engines/duck/engine.py",
        "others = len(streams) > 1 and view != TABLE",
        "others = False",
        "relations",
    ),
    _one(
        "escape sequences printed as they are",
        "query/outward.py",
        "return _IN_A_LINE.sub(_escaped, text)",
        "return text",
        "outward",
    ),
    _one(
        "formulas in a CSV as they are",
        "query/outward.py",
        'return f"\'{text}" if _FORMULA.match(text) else text',
        "return text",
        "outward",
    ),
    _one(
        "membership believes the shares that it assumes",
        "attacks/membership.py",
        '    return judged(\n        "membership",',
        "    claim = asked.target.claim\n"
        "    if claim and found_p_value(found, people.n, test.false_upper, float(claim.epsilon)) <= 9e-4:\n"
        "        guesses = Guesses(people.bits, np.ones(people.n))\n"
        '    return judged(\n        "membership",',
        "honest",
    ),
    _one(
        "every claim of a chain at the whole of beta",
        "accuracy/joint_measures.py",
        "return self.beta * (FIRST_SHARE if number == 0 else (1 - FIRST_SHARE) * 2.0**-number)",
        "return self.beta",
        "claims",
    ),
    _one(
        "one odd value refuses all rows",
        "mechanisms/columns.py",
        "    except (TypeError, ValueError, OverflowError):\n        return math.nan",
        "    except (TypeError, ValueError, OverflowError):\n        raise",
        "odd rows",
    ),
    _one(
        "text inside of lists fails a scan",
        "engines/duck/engine.py",
        'return "VARCHAR" in kind or "JSON" in kind',
        'return kind == "VARCHAR"',
        "odd rows",
    ),
    _one(
        "the units of one table filter another",
        "engines/duck/database.py",
        '    "disabled_optimizers": "join_filter_pushdown",\n',
        "",
        "odd rows",
    ),
    _one(
        "times of milliseconds scanned as all others",
        "engines/duck/database.py",
        "return source.coarse if isinstance(source, Files) else frozenset()",
        "return frozenset()",
        "odd rows",
    ),
    _one(
        "statistics of a file spelled as text",
        "engines/duck/engine.py",
        "            short = _packed(source)\n",
        "            for path in source.files:\n"
        "                cursor.execute(f\"SELECT * FROM parquet_metadata('{path}')\").fetchall()\n"
        "            short = _packed(source)\n",
        "odd rows",
    ),
)

RELEASES = (
    _one(
        "a residual that is not charged",
        "session/answering/release_booking.py",
        "sum(grains for _, grains in part)",
        "sum(grains for key, grains in part if key != ())",
        "tables",
    ),
    _one(
        "what a look stored counted again",
        "session/answering/release_booking.py",
        "                self._booked = stored\n",
        "                pass\n",
        "tables",
    ),
    _one(
        "contrasts that are not orthogonal",
        "mechanisms/residuals.py",
        "np.cumsum(each)[:-1].reshape(along) * table.take(",
        "1 * table.take(",
        "tables",
    ),
    _one(
        "negative shares of made-up rows not told",
        "mechanisms/shared_noise.py",
        "[self.patterns[place] ** 2 for place in table]",
        "[self.patterns[place].clip(0) ** 2 for place in table]",
        "tables",
    ),
    _one(
        "the pilot's noise in the answer",
        "session/answering/release.py",
        'self._sharpened(measuring, receipt, kept, "answer", made.design.grains)',
        'self._sharpened(measuring, receipt, kept.with_state("answer", kept.pilot), "answer", made.design.grains)',
        "tables",
    ),
    _one(
        "a strategy that is not charged",
        "session/answering/release_booking.py",
        "sum(grains for _, grains in part)",
        "sum(grains for key, grains in part if key != 0)",
        "products",
    ),
    _one(
        "a strategy priced by its shortest column",
        "mechanisms/strategy.py",
        "(one**2).sum(axis=0).max()",
        "(one**2).sum(axis=0).min()",
        "products",
    ),
    _one(
        "sums of cells that lose a carry",
        "mechanisms/strategy.py",
        "high = high + (middle >> _LIMB)",
        "high = high + 0 * (middle >> _LIMB)",
        "products",
    ),
    _one(
        "rows outside of all edges in the first bin",
        "session/answering/product_request.py",
        "zip((edges[-1], *edges), edges, strict=False)",
        "zip((edges[0], *edges), edges, strict=False)",
        "products",
    ),
    _one(
        "each pair of a tree at the price of all",
        "mechanisms/spanning_tree.py",
        "        price = shared(pairs_loss, *[1] * (columns - 1))[0]\n",
        "        price = pairs_loss\n",
        "models",
    ),
    _one(
        "rounds that measure at more than they pay",
        "mechanisms/adaptive_tables.py",
        "        choice, measurement = shared(price, *CHOICE)\n",
        "        choice, measurement = price, price + price\n",
        "models",
    ),
    _one(
        "rounds of which only the last is begun in the books",
        "session/answering/synthetic.py",
        "            paid.append(paid[-1] + price.amount)\n",
        "            paid.append(price.amount)\n",
        "models",
    ),
    _one(
        "errors of many tables priced as of one",
        "session/answering/synthetic.py",
        "loss, squares=many * reach**2, total=many * reach)",
        "loss, squares=reach**2, total=reach)",
        "models",
    ),
    _one(
        "errors of products priced as if a row moved one answer",
        "session/answering/synthetic.py",
        "        move = told.queries.total() * asked.reach\n",
        "        move = asked.reach << 16\n",
        "models",
    ),
    _one(
        "the watch of online queries free of charge",
        "mechanisms/online_weights.py",
        "restated(Pure(self.epsilon), self.currency)",
        "restated(Pure(self.epsilon / 4), self.currency)",
        "models",
    ),
    _one(
        "what noise hides left out of the report on synthetic rows",
        "synthetic/released.py",
        ".sum()), _reach(plan, number)",
        ".sum()), 0.0",
        "models",
    ),
)

CHAINS = (
    _one(
        "chances of a miss added up as if nobody looked",
        "accuracy/claim_chances.py",
        "    return float(min(max(found, sum(claims)), 1.0))",
        "    return float(min(sum(claims), 1.0))",
        "deciding",
    ),
    _one(
        "earlier answers of a question forgotten",
        "session/answering/one_question.py",
        "return with_claims(kept, (*(claims_of(current) or self.claims), self.beta), facts)",
        "return with_claims(kept, (self.beta,), facts)",
        "deciding",
    ),
    _one(
        "every answer together at the whole chance of a miss",
        "session/answering/one_question.py",
        "    frame = replace(frame, beta=next_chance(claims, frame.beta))\n",
        "",
        "deciding",
    ),
    _one(
        "measurements after a failed ask thrown away",
        "session/core/merging.py",
        "    if current == read and (worth is None or receipt.exclusive or worth(current)):\n",
        "    if current == read and receipt.exclusive:\n",
        "kept",
    ),
    _one(
        "a sharper mean begun from nothing",
        "accuracy/joint_measures.py",
        "        return bool(state.critical) and goes_on(",
        "        return not state.critical and goes_on(",
        "refining",
    ),
    _one(
        "looks at a mean at the critical value of one",
        "accuracy/ratio_shapes.py",
        "    return two_sided(beta * LOOKS_SHARE) + max(slope / z * most**2 + MORE, min(APART * most, APART_MOST))\n",
        "    return z\n",
        "mean looks",
    ),
    _one(
        "looks at a mean that end where its range does",
        "accuracy/ratio_looks.py",
        "        return only.centre + ends[0], only.centre + ends[1]\n",
        "        low, high = self._within(*(only.centre + end for end in ends))\n        return low[0], high[0]\n",
        "mean looks",
    ),
    _one(
        "looks that end where the range does at the c of others",
        "accuracy/ratio_shapes.py",
        "np.where(less, CUT_EASY, CUT if simple else CUT_OFF)",
        "np.where(less, 0.0, CUT if simple else CUT_OFF)",
        "mean looks",
    ),
    _one(
        "looks that end where a range around 0 does at the c of others",
        "accuracy/ratio_shapes.py",
        "np.where(less, CUT_EASY, CUT if simple else CUT_OFF)",
        "np.where(less, CUT_EASY, CUT if simple else 0.0)",
        "mean looks",
    ),
    _one(
        "looks at a mean at the smaller c of its range's end everywhere",
        "accuracy/ratio_chances.py",
        "np.clip((place - helped(CUT_FROM, 1.0)) / EASED, 0.0, 1.0)",
        "np.ones(np.shape(place))",
        "mean looks",
    ),
    _one(
        "looks at a variance at the critical value of one",
        "accuracy/variance_looks.py",
        "    return two_sided(beta * LOOKS_SHARE) + slope / z * most\n",
        "    return z\n",
        "variance looks",
    ),
    _one(
        "looks that end where noise makes a variance negative",
        "accuracy/variance_looks.py",
        "        known &= low > 0\n",
        "",
        "variance looks",
    ),
    _one(
        "looks at several answers at the critical value of one",
        "accuracy/joint_looks.py",
        "max(critical_value(beta, most) + MORE, held)",
        "max(critical_value(beta, 0.0), held)",
        "joint looks",
    ),
    _one(
        "groups given up that are too small at some mean",
        "accuracy/reach.py",
        "beta) * left).all(axis=0))",
        "beta) * left).any(axis=0))",
        "joint looks",
    ),
    _one(
        "what a cap stopped not gone on from",
        "accuracy/joint_measures.py",
        "going = ((part > 0) | (pivot.done < 1)) & ",
        "going = (part > 0) & ",
        "paused",
    ),
    _one(
        "what came after a pause counted twice",
        "accuracy/joint_claims.py",
        "base, begun = np.where(self.paused, self.base, shown), np.where(self.paused, self.begun, now.time)",
        "base, begun = shown, now.time",
        "paused",
    ),
    _one(
        "a pilot whose proportions add up to more than it buys",
        "accuracy/joint_pilot.py",
        "(wanted / np.maximum(rough, 1.0))",
        "(wanted / np.maximum(price, 1.0))",
        "reserved",
    ),
    _one(
        "a look beyond what was reserved for it",
        "ledger/rules.py",
        "    if amount > receipt.reserved:\n",
        "    if amount < 0:\n",
        "reserved",
    ),
    _one(
        "lanes that take from the price of others",
        "session/answering/looks.py",
        '        whole("grains", int(grains.min(initial=0)))\n',
        "",
        "reserved",
    ),
    _one(
        "what a median holds charged again",
        "session/answering/looks.py",
        "worst_cost(self._before + new, most) - worst_cost(self._before, most)",
        "worst_cost(self._before + new, most)",
        "refining",
    ),
    _one(
        "what a mean holds taken off its price twice",
        "session/answering/looks.py",
        "- worst_cost(self._before, most)",
        "- 2 * worst_cost(self._before, most)",
        "refining",
    ),
    _one(
        "groups that their intervals answer asked again",
        "planning/stored_measurements.py",
        "    met = held.serving(claims, *target, room=room)\n",
        "    met = held.serving(claims, 0.0, 0.0, room=room)\n",
        "held",
    ),
    _one(
        "the tighter of an old and a new kind of target",
        "planning/gaussian_count.py",
        "    return Schedule.plan(\n        relative,\n",
        "    return Schedule.plan(\n        relative if kept is None else min(relative, kept.relative),\n",
        "held",
    ),
    _one(
        "groups that waited held to the old constant",
        "planning/stored_measurements.py",
        "target, schedule.strictest / kept.critical)",
        "target, 1.0)",
        "held",
    ),
)

UNCONVERGED = """        if float(np.linalg.norm(slope)) > FLAT / 2:
            from farthing.errors import DataError
            raise DataError("no minimum was found", rule="", next_step="")
"""

PLANS = (
    Mutant(
        "a fit that has not converged fails",
        "models/problems.py",
        (
            ("return weight(len(self.points), self.rows)", "return 1 / self.rows"),
            (
                "        return theta\n\n    def _descended",
                UNCONVERGED + "        return theta\n\n    def _descended",
            ),
        ),
        ("converged",),
    ),
    _one(
        "a recursion for every small relative target",
        "accuracy/stop_rule.py",
        "    if relative <= looks_apart(beta, ratio):\n",
        "    if relative <= 0.0:\n",
        "work",
    ),
    _one(
        "any number of keys",
        "query/keys.py",
        "    if groups > MOST_GROUPS:\n",
        "    if groups > 10**12:\n",
        "work",
    ),
    _one(
        "any number of constants",
        "sql/predicates.py",
        "    if len(node.expressions) > MOST_CHOICES:\n",
        "    if len(node.expressions) > 10**12:\n",
        "work",
    ),
    _one(
        "rules made for any relative target",
        "accuracy/stop_rule.py",
        "    return min(relative, law.two_sided(beta) / law.least_signal)",
        "    return relative",
        "told near",
        "any target",
    ),
    _one(
        "the mean of looks told as estimate",
        "accuracy/report.py",
        "less = size * (1 - 2 * schedule.law.variance / schedule.jumps.boundary**2)",
        "less = size * 1.0",
        "told near",
    ),
    _one(
        "an end of a chain that counts for more than its mean",
        "accuracy/stopped_laws.py",
        "    whole = 0.5 + end / (2 * (end + decay))\n",
        "    whole = 0.25 + end / (2 * (end + decay))\n",
        "totals",
    ),
    _one(
        "shifts of a chain beside the whole of its end",
        "accuracy/stopped_laws.py",
        "parts.append((1 - shifted - far, tilted_end(",
        "parts.append((1 - far, tilted_end(",
        "totals",
    ),
    _one(
        "a spread of totals without its norm",
        "accuracy/stopped_laws.py",
        " / (2 * wider) - np.log(wider) / 2)",
        " / (2 * wider))",
        "totals",
    ),
    _one(
        "distances that floats cannot square",
        "accuracy/target.py",
        "    if absolute and not least <= absolute <= largest:\n",
        "    if absolute and not 0 <= absolute:\n",
        "any target",
    ),
    _one(
        "targets of any number of digits",
        "accuracy/target.py",
        "    except (TypeError, ValueError, OverflowError):\n",
        "    except (TypeError, ValueError):\n",
        "any target",
    ),
    _one(
        "a hopeless count said to be possible",
        "planning/gaussian_count.py",
        "hopeless=not reachable and not looks.free and not relative,",
        "hopeless=False,",
        "out of reach",
    ),
    _one(
        "hopeless pairs of aggregates said to be possible",
        "planning/joint_measures.py",
        "hopeless=hopeless and not free,",
        "hopeless=False,",
        "out of reach",
    ),
    _one(
        "failures of one table held against another",
        "ledger/told.py",
        'if (row.request or "").startswith(prefix)]',
        'if (row.request or "").startswith("")]',
        "failures",
    ),
    _one(
        "interrupts counted as failures",
        "session/core/transaction.py",
        "interrupted=not self._failed)",
        "interrupted=False)",
        "failures",
    ),
)

FORMULAS = (
    _one(
        "bends left out of the interval of a formula",
        "accuracy/formulas.py",
        '        turned = np.einsum("lkg,kg->lg", bends, reach)\n',
        "        turned = np.zeros_like(reach)\n",
        "formulas",
    ),
    _one(
        "the second part of a sum left out of an enclosure",
        "accuracy/enclosures.py",
        "        return self + other.times(-1.0)\n",
        "        return self + other.times(-0.0)\n",
        "formulas",
    ),
    _one(
        "a formula that reads the lanes of its first part only",
        "accuracy/formulas.py",
        "        return tuple(sorted({lane for part in self._parts for lane in part.reads}))\n",
        "        return tuple(sorted({lane for part in self._parts[:1] for lane in part.reads}))\n",
        "formulas",
    ),
    _one(
        "a covariance whose products count at half of their range",
        "query/pairs.py",
        "Total(product, -h * k, h * k)",
        "Total(product, -h * k / 2, h * k / 2)",
        "formulas",
    ),
    _one(
        "the pilot of a pure mean free of charge",
        "accuracy/laplace_state.py",
        "(self.pilot.level + self.claimed.level).sum(axis=0)",
        "self.claimed.level.sum(axis=0)",
        "pure measures",
    ),
    _one(
        "a pure mean charged for one of its lanes",
        "session/answering/laplace_measures.py",
        "begun.price(paid))",
        "begun.price(paid // 2))",
        "pure measures",
    ),
    _one(
        "the quantile of one lane for a sum of several",
        "accuracy/laplace_intervals.py",
        "1.0, squares[:, None] / apart).prod(axis=1)\n",
        "1.0, squares[:, None] / apart).prod(axis=1) * 0 + np.eye(len(unit))[-1][:, None]\n",
        "pure measures",
    ),
    _one(
        "every look of a pure mean at three times beta",
        "accuracy/laplace_looks.py",
        "        told = min(told, held) if held else told\n",
        "        told = 3 * prices.beta\n",
        "pure measures",
    ),
    _one(
        "pure groups given up that are too small at some mean",
        "accuracy/laplace_reach.py",
        "(weights.T @ values < enough - doubt).all(axis=0)",
        "(weights.T @ values < enough - doubt).any(axis=0)",
        "pure measures",
    ),
    _one(
        "pure groups given up by the units of their values",
        "accuracy/laplace_reach.py",
        "float((b / np.abs(each).max(axis=1)).max())",
        "float(b.max())",
        "pure measures",
    ),
    _one(
        "every rung of a pure mean at the whole of beta",
        "accuracy/laplace_measures.py",
        "        return self.beta * LATER_SHARE * 2.0**-rung\n",
        "        return self.beta * 40\n",
        "pure measures",
    ),
    _one(
        "a chain of a pure quantile charged less than it rose",
        "accuracy/quantile_chain_run.py",
        "        price = LEVELS[level] - held\n",
        "        price = (LEVELS[level] - held) // 2\n",
        "pure quantiles",
    ),
    _one(
        "rows of a unit on one side of a threshold hidden as one",
        "accuracy/quantile_chains.py",
        "LaplaceChain(truth, self.max_rows, bits=self.bits)",
        "LaplaceChain(truth, 1, bits=self.bits)",
        "pure quantiles",
    ),
    _one(
        "every proof of a pure quantile at far more than its part",
        "accuracy/quantile_chains.py",
        "(1 - INTERVAL_SHARE) * part * each)",
        "np.minimum(1e4 * part * each, 4.0))",
        "pure quantiles",
    ),
    _one(
        "sides of a pure quantile told at an eighth of the noise",
        "accuracy/quantile_round_run.py",
        "weighted_reach(share, 1 + 0 * place + column, many[some] - column, chance[some], each[some])\n",
        "weighted_reach(share, 1 + 0 * place + column, many[some] - column, chance[some], each[some] / 8)\n",
        "pure quantiles",
    ),
    _one(
        "the chains of a pure quantile carried on by two",
        "session/answering/quantile.py",
        "        if not receipt.exclusive:\n",
        "        if False:\n",
        "pure quantiles",
    ),
    _one(
        "four histograms of a pure report at the price of one",
        "session/answering/contribution_report.py",
        "GeometricRelease(truth).release(each)",
        "GeometricRelease(truth).release(4 * each)",
        "pure quantiles",
    ),
)

SHARES = (
    _one(
        "a total measured free of charge",
        "accuracy/total_state.py",
        "np.asarray((self.grains + self.shared).sum(axis=0), dtype=np.int64)",
        "np.asarray(self.grains.sum(axis=0), dtype=np.int64)",
        "shares",
    ),
    _one(
        "a total that one unit moves by all its groups at the noise of one",
        "session/answering/share_of_total.py",
        "GaussianMeasurements(totals, moved * together,",
        "GaussianMeasurements(totals, moved,",
        "shares",
    ),
    _one(
        "a share told as if its total were exact",
        "accuracy/share_of_total.py",
        "            spread * rest,\n",
        "            0.0 * spread,\n",
        "shares",
    ),
    _one(
        "a pure total that is shown finer for some of its groups",
        "accuracy/laplace_measures.py",
        "        return most[:, self.places]\n",
        "        return wanted\n",
        "shares",
    ),
    _one(
        "a claim on a share that grows beyond the cap",
        "accuracy/share_of_total.py",
        "        grains = np.minimum(grains, left)\n        return grains, np.minimum(shared, left - grains)\n",
        "        return grains + 0 * left, shared\n",
        "shares",
    ),
    _one(
        "a running total told as surely as its last group alone",
        "accuracy/share_of_total.py",
        "            own, variance = self.running.summed(own), self.running.many * variance",
        "            own = self.running.summed(own)",
        "shares",
    ),
    _one(
        "a pure running total told as surely as one group",
        "planning/laplace_running_total.py",
        "1 if power <= 0 else",
        "1 if power <= 1e9 else",
        "shares",
    ),
    _one(
        "a difference of groups told between their lower ends",
        "query/comparison.py",
        "            at = np.where(corner, upper, lower)\n            above",
        "            at = np.where(corner[:1], upper, lower)\n            above",
        "shares",
    ),
    _one(
        "a number of two groups told as surely as one",
        "release.py",
        "self.computed.get(name, 1)",
        "1",
        "shares",
    ),
)

MUTANTS = (*NOISE, *NUMBERS, *BOUNDS, *PRICES, *BOOKS, *DOORS, *EDGES, *CHAINS, *PLANS, *RELEASES, *FORMULAS, *SHARES)
