"""Many tables at once: every residual measured with as much noise as the goal allows, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidTarget, OutOfReach
from farthing.limits.query import Limit
from farthing.mechanisms.gaussian import Coin
from farthing.mechanisms.residuals import Residual, ResidualMeasurements
from farthing.planning import Frame
from farthing.planning.release import ReleaseDesign, ReleasePlan, design_for
from farthing.planning.release_pilot import Pilot
from farthing.privacy.words import said
from farthing.query.words import about
from farthing.released import Release
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.release_record import Kept, State
from farthing.session.answering.release_request import ReleaseRequest, wanted
from farthing.session.core.ceiling import ceiling
from farthing.session.core.merging import merge
from farthing.session.core.transaction import Bill, answer_and_book, stored_measurement

if TYPE_CHECKING:
    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning.products import ProductPlan
    from farthing.privacy.loss import Booked
    from farthing.query.keys import Keys


def bill_of(made: ReleasePlan | ProductPlan, *, least: str) -> Bill | None:
    """Return what a release of any kind is to be charged; None if there is nothing. Refused above its cap.

    Args:
        made: its plan.
        least: what the noise of the sharpest release is far below, in words.
    """
    if made.free:
        return None
    if not made.reachable:
        raise OutOfReach(
            "the target is out of reach under the cap of the question",
            needed=made.worst_price,
            left=made.cap,
            rule="nothing is paid for a target that cannot be met; nothing was charged",
            got=f"{made.goal.words} takes {said(made.worst_price, made.delta)}, at most {said(made.cap, made.delta)}",
            next_step=f'{made.fitting}; max_epsilon= or cap="all" raises the cap',
        )
    if made.too_much:
        raise InvalidTarget(
            "the goal takes more than one question can hold",
            rule=f"at most mu = 8 a question: noise is far below one {least} then",
            got=made.goal.words,
            next_step="allow a larger error",
        )
    words = f"{made.goal.words.removesuffix(' (named)')}, {made.goal.confidence:.4g}"
    return Bill(made.worst_price, made.worst_price, made.question, lambda: made.fitting, words, name="the release")


@dataclass(frozen=True, slots=True, eq=False)
class _BookedRelease:
    """A release with what stands in the ledger about it, as a transaction books it."""

    asked: ReleaseRequest
    plan: ReleasePlan
    kept: Kept
    pilot: Pilot | None

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged; None if there is nothing. Refused above its cap."""
        return bill_of(self.plan, least="cell")

    def stored_answer(self) -> tuple[ReleasePlan, Kept, Booked]:
        """Return the release that was measured before."""
        return self.plan, self.kept, self.asked.context.loss(0)

    def measured(self, receipt: Receipt) -> tuple[tuple[ReleasePlan, Kept, Booked], Booked]:
        """Count, look with a pilot where the target is relative, and measure each residual that is to be sharper."""
        measuring = ResidualMeasurements(_counts(self.asked, receipt), self.asked.reach)
        made, pilot = self.plan, self.kept.pilot
        if self.pilot is not None:
            made, pilot = self._piloted(measuring)
        answer, paid = self._sharpened(measuring, self.kept.answer, made.design.grains)
        paid += made.pilot - self._grains(self.kept.pilot) if self.pilot is not None else 0
        price = made.coin.loss(paid)
        return (made, Kept(answer, pilot), price), price

    def merged(self, current: bytes | None, answer: tuple[ReleasePlan, Kept, Booked], receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: every measurement, ours and others', each of them paid in full."""

        def both(theirs: bytes, _: bytes) -> bytes:
            """Return a record of all measurements."""
            return Kept.from_bytes(theirs).with_all(self.kept, answer[1]).to_bytes()

        return merge(current, answer[1].to_bytes(), receipt, read=None, both=both)

    def _piloted(self, measuring: ResidualMeasurements) -> tuple[ReleasePlan, State]:
        """Look with the pilot until it has told enough; return the plan that follows from it alone, and the pilot."""
        assert self.pilot is not None  # noqa: S101  # the target is relative
        state = self.kept.pilot
        while (level := self.pilot.next(*told_by(self.asked, state))) is not None:
            state, _ = self._sharpened(measuring, state, level)
        told = told_by(self.asked, state)
        aimed, design = self.pilot.aimed(*told), self.pilot.design(*told)
        return replace(self.plan, design=design, aimed=aimed, pilot=self._grains(state)), state

    def _sharpened(self, measuring: ResidualMeasurements, state: State, grains: Any) -> tuple[State, int]:
        """Return a state in which each residual of the workload has so many grains, and what it took."""
        found, paid = dict(state), 0
        for subset, more in _more(state, self.asked, grains).items():
            found[subset] = measuring.measure(subset, _held(state, self.asked, subset), more)
            paid += more
        return found, paid

    def _grains(self, state: State) -> int:
        """Return what the residuals of the workload have cost."""
        return sum(_held(state, self.asked, subset).grains for subset in self.plan.design.basis.subsets)


def plan(asked: ReleaseRequest) -> ReleasePlan:
    """Return the price of a release; it spends nothing."""
    return _find(asked, stored_measurement(asked.context, asked.question)).plan


def release(asked: ReleaseRequest) -> Release:
    """Measure a release at the least loss that reaches its goal, and book it.

    Guarantee: what leaves is as private as what the ledger charged.
    Proof: mechanisms.residuals for what is measured; docs/proofs/session.answering.one_question.md for the books.
    Assumes: an engine that keeps the contract of `engines.Engine`; the ledger is durable.
    Rounds: prices up to whole farthings.
    """
    context = asked.context
    with ceiling(context, asked.request.at_most):
        made, kept, price = answer_and_book(context, asked.question, lambda stored: _find(asked, stored))
    shown = asked.shown
    return Release(
        name=asked.name,
        columns=asked.workload.columns,
        tables=asked.workload.tables,
        paid=context.loss(price.farthings),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=f"{made.about}; a row counts if its value is listed in every column; {context.where_kept}",
        _keys={name: shown[name].column(name) for name in asked.workload.columns},
        _places={name: _back(shown[name]) for name in shown},
        _contrasts={subset: kept.answer[subset].mean for subset in made.design.basis.subsets},
        _plan=made,
        _refine=partial(_refined, asked),
        _limit=partial(limit_of, made),
    )


def limit_of(made: ReleasePlan) -> Limit:
    """Return the least loss of any unbiased mechanism of the same errors, beside what was paid in all.

    Guarantee: no unbiased mechanism with these errors at every table has a smaller loss.
    Proof: docs/proofs/limits.tables.md, section 4.
    Assumes: some unit may add `most_rows` rows to one cell.
    Rounds: the least loss down.
    """
    from farthing.limits.divergence import least_amount

    design, basis = made.design, made.aimed
    dual = None if made.goal.absolute is None else basis.least_largest()[1]
    counted = basis.counted * (basis.cells if dual is None else dual)
    chi = basis.squares_at_least(dual) * made.most_rows**2 / float(counted @ design.variances)
    paid = made.coin.loss(design.total + made.pilot)
    return Limit(type(paid).of_amount(least_amount(type(paid), chi)), paid, int(basis.cells.sum()))


def _refined(asked: ReleaseRequest, **changes: Any) -> Release:
    """Return a sharper release of the same tables."""
    absolute, rms = asked.errors
    options: dict[str, Any] = {
        "relative": asked.relative or None,
        "absolute": absolute,
        "rms": rms,
        "loss": asked.request.loss,
        "confidence": asked.request.confidence,
        "simultaneous": asked.request.simultaneous,
        "max_epsilon": asked.request.max_epsilon,
        "cap": asked.request.cap,
    }
    goals = {"absolute", "rms", "loss"} & set(changes)
    options |= dict.fromkeys({"absolute", "rms", "loss"}, None) if goals else {}
    options |= {"relative": None} if goals - {"absolute"} else {}
    options |= dict.fromkeys({"max_epsilon", "cap"}, None) if {"max_epsilon", "cap"} & set(changes) else {}
    request, errors, relative = wanted(options | changes)
    return release(replace(asked, request=request, errors=errors, relative=relative))


def _find(asked: ReleaseRequest, stored: Stored | None) -> _BookedRelease:
    """Plan a release under what is known of it."""
    context, query = asked.context, asked.query
    kept = Kept.from_bytes(None if stored is None else stored.blob)
    request, basis = asked.request, asked.basis
    limit = context.budget.loss(request.max_epsilon) if request.max_epsilon is not None else request.cap
    frame = Frame.of(
        query,
        request=request,
        limit=limit,
        parts=1,
        budget=context.budget,
        remaining=context.loss(context.ledger.remaining),
    )
    coin = Coin(frame.gaussian, 1, asked.reach)
    goal = asked.goal(request.beta(int(basis.cells.sum()) if request.simultaneous else 1))
    if goal.loss is not None:  # in whole farthings, as it is booked
        goal = replace(goal, loss=frame.cap)
    held = np.array([_held(kept.answer, asked, subset).grains for subset in basis.subsets], np.float64)
    before = ReleaseDesign(basis, asked.reach, held)
    design = design_for(basis, coin, goal, held, asked.reach)
    pilot, aimed, looks, more = None, basis, 0, 0
    if goal.relative and design.total > before.total:
        pilot = Pilot(basis, coin, goal, asked.reach, held)
        told = told_by(asked, kept.pilot)
        looks = sum(_held(kept.pilot, asked, subset).grains for subset in basis.subsets)
        if pilot.next(*told) is None:
            design, aimed = pilot.design(*told), pilot.aimed(*told)
        else:
            more = sum(_more(kept.pilot, asked, pilot.most).values())
    needed = sum(_more(kept.answer, asked, design.grains).values()) + more
    made = ReleasePlan(
        question=asked.words,
        goal=goal,
        design=design,
        before=before,
        worst_price=context.loss(coin.loss(needed).farthings),
        cap=frame.cap or frame.remaining,
        remaining=frame.remaining,
        delta=context.budget.report_delta,
        about=about(query),
        coin=coin,
        most_rows=query.max_rows,
        aimed=aimed,
        free=not needed,
        pilot=looks + more,
    )
    return _BookedRelease(asked, made, kept, pilot)


def _more(state: State, asked: ReleaseRequest, grains: Any) -> dict[tuple[int, ...], int]:
    """Return what each residual is to pay on top of what it has, where that is anything: whole grains, exactly."""
    pairs = zip(asked.basis.subsets, map(int, grains.tolist()), strict=True)
    found = {subset: wanted_grains - _held(state, asked, subset).grains for subset, wanted_grains in pairs}
    return {subset: more for subset, more in found.items() if more > 0}


def told_by(asked: ReleaseRequest, state: State) -> tuple[Any, dict[tuple[int, ...], Any]]:
    """Return what each residual of a pilot has cost, float64[subsets], and what it told."""
    held = {subset: _held(state, asked, subset) for subset in asked.basis.subsets}
    paid = np.array([residual.grains for residual in held.values()], np.float64)
    return paid, {subset: residual.mean for subset, residual in held.items()}


def _counts(asked: ReleaseRequest, receipt: Receipt) -> Any:
    """Return the exact counts by each subset of columns, sealed: one question to the engine."""
    sets = {*asked.basis.tables, *asked.basis.subsets}
    return crossed_counts(asked.context, asked.query, asked.lists, sets, receipt)


def _held(state: State, asked: ReleaseRequest, subset: tuple[int, ...]) -> Residual:
    """Return what was measured of a residual before."""
    return state.get(subset) or Residual.nothing([len(asked.lists[place]) for place in subset])


def _back(keys: Keys) -> Any:
    """Return the place of each listed value in the one order of the list."""
    return np.arange(len(keys)) if keys.order is None else np.argsort(keys.order, kind="stable")
