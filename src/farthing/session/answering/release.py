"""Many tables at once: every residual measured with as much noise as the goal allows, in one transaction."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.limits.query import Limit
from farthing.mechanisms.residuals import Residual, ResidualMeasurements
from farthing.mechanisms.shared_noise import summed
from farthing.planning.release import ReleaseDesign, ReleasePlan, design_for
from farthing.planning.release_pilot import Pilot
from farthing.planning.release_plan import CLOSE
from farthing.planning.release_shaped import MOST_SHAPED, ShapedDesign
from farthing.released import Release
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.release_booking import BookedRelease, booked, refined_options
from farthing.session.answering.release_options import wanted
from farthing.session.answering.release_record import Kept, Shaped, State
from farthing.session.answering.release_request import MECHANISMS, ReleaseRequest
from farthing.session.core.ceiling import ceiling
from farthing.session.core.transaction import answer_and_book, stored_measurement

if TYPE_CHECKING:
    from farthing.ledger.entry import Receipt, Stored
    from farthing.limits.tables import Residuals
    from farthing.planning.release_plan import Goal
    from farthing.privacy.loss import Booked
    from farthing.query.keys import Keys


WORST_MOST: Final = 1.02
"""What a unit pays at most for a relative target, over what every cell at the absolute one costs."""

_LEAST: Final = 1 + 2.0**-10  # so much more at least get residuals that share noise: looks keep to proportions


class _BookedTables(BookedRelease[ReleasePlan, Kept]):
    """A release of tables, as a transaction books it."""

    asked: ReleaseRequest
    pilot: Pilot | None = None
    shaped: int | None = None  # which of the shaped residuals it goes on with; as many as there are for new ones

    def measure(self, receipt: Receipt) -> tuple[ReleasePlan, Kept, Booked]:
        """Count, look with a pilot where the target is relative, and measure each residual that is to be sharper."""
        measuring = ResidualMeasurements(_counts(self.asked, receipt), self.asked.reach)
        made, kept = self.plan, self.kept
        if self.pilot is not None:
            made, kept = self._piloted(measuring, receipt)
        if isinstance(made.design, ShapedDesign):
            kept = self._shaped(measuring, receipt, kept, made.design)
        else:
            kept = self._sharpened(measuring, receipt, kept, "answer", made.design.grains)
        return made, kept, made.coin.loss(self.paid)

    def _shaped(self, measuring: ResidualMeasurements, receipt: Receipt, kept: Kept, design: ShapedDesign) -> Kept:
        """Return what is kept with the shaped residuals of the release as sharp as in a design."""
        assert self.shaped is not None  # noqa: S101  # such a design goes on with one, or begins one
        found, number = list(kept.shaped), self.shaped
        wanted = dict(zip(design.basis.subsets, map(int, design.grains.tolist()), strict=True))
        if number == len(found):
            state = {subset: _held({}, self.asked, subset) for subset in wanted}
            found.append(Shaped(design.weights, design.shapes, state, wanted, design.shared))
        else:
            found[number] = replace(found[number], wanted={**found[number].wanted, **wanted})
        shapes, state, noise = found[number].shapes, dict(found[number].state), found[number].shared

        def now() -> Kept:
            """Return what is kept, with all that was measured by now."""
            found[number] = replace(found[number], state=dict(state))
            return replace(kept, shaped=tuple(found))

        alike, numbers, moved = noise is not None, np.zeros(0), None
        along = {} if noise is None else noise.along(design.weights)
        for subset, more in self.looks(_more(state, self.asked, design.grains), receipt, now, alike=alike):
            if noise is not None:
                numbers = noise.drawn(more) if not subset else numbers  # a look begins with the total
                moved = summed(numbers, [along[place] for place in subset])
            state[subset] = measuring.measure(subset, state[subset], more, shapes[subset], moved)
        return now()

    def _piloted(self, measuring: ResidualMeasurements, receipt: Receipt) -> tuple[ReleasePlan, Kept]:
        """Look with the pilot until it has told enough; return the plan that follows from it alone, and the pilot.

        A finer pilot is paid from what its coarser one said is saved. Where it then says otherwise, and noise by cell
        does not fit, the design is that of the coarser one: no unit pays more than was reserved.
        """
        assert self.pilot is not None  # noqa: S101  # the target is relative
        kept, told, earlier = self.kept, told_by(self.asked, self.kept.pilot), None
        while (level := self.pilot.next(*told)) is not None:
            earlier = told
            kept = self._sharpened(measuring, receipt, kept, "pilot", level)
            told = told_by(self.asked, kept.pilot)
        looked, most = self._grains(kept.pilot), _allowed(self.pilot)
        aimed, design = self.pilot.aimed(*told), self.pilot.design(*told)
        if self.shaped is not None:
            shaped = self.pilot.shaped(*told, most - looked)
            if shaped is not None:
                return replace(self.plan, design=shaped, aimed=aimed, pilot=looked), kept
            if earlier is not None and design.total + looked > most:
                aimed, design = self.pilot.aimed(*earlier), self.pilot.design(*earlier)
        return replace(self.plan, design=design, aimed=aimed, pilot=looked), kept

    def _sharpened(self, measuring: ResidualMeasurements, receipt: Receipt, kept: Kept, name: str, grains: Any) -> Kept:
        """Return what is kept with each residual of the workload, for the answer or of the pilot, at so many grains."""
        state: State = dict(getattr(kept, name))
        for subset, more in self.looks(
            _more(state, self.asked, grains), receipt, lambda: kept.with_state(name, dict(state))
        ):
            state[subset] = measuring.measure(subset, _held(state, self.asked, subset), more)
        return kept.with_state(name, state)

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
        done = answer_and_book(context, asked.question, lambda stored: _find(asked, stored))
    made, kept = done.plan, done.kept
    state = kept.answer
    if isinstance(made.design, ShapedDesign):
        at = _covering(kept, made.design.basis.subsets)
        assert at is not None  # noqa: S101  # it was measured
        state = kept.shaped[at].state
    shown = asked.shown
    return Release(
        **asked.told(done),
        columns=asked.workload.columns,
        tables=asked.workload.tables,
        about=f"{made.about}; a row counts if its value is listed in every column; {context.where_kept}",
        _keys={name: shown[name].column(name) for name in asked.workload.columns},
        _places={name: _back(shown[name]) for name in shown},
        _contrasts={subset: state[subset].mean for subset in made.design.basis.subsets},
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
    chi = basis.squares_at_least(dual) * made.most_rows**2 / float(counted @ design.means)
    paid = made.coin.loss(design.total + made.pilot)
    return Limit(type(paid).of_amount(least_amount(type(paid), chi)), paid, int(basis.cells.sum()))


def _refined(asked: ReleaseRequest, **changes: Any) -> Release:
    """Return a sharper release of the same tables."""
    request, errors, relative = wanted(refined_options(asked, changes), MECHANISMS)
    return release(replace(asked, request=request, errors=errors, relative=relative))


def _find(asked: ReleaseRequest, stored: Stored | None) -> BookedRelease[ReleasePlan, Kept]:
    """Plan a release under what is known of it."""
    kept = Kept.from_bytes(None if stored is None else stored.blob)
    return booked(asked, stored, lambda goal, claims: _found(asked, kept, goal, claims))


def _found(asked: ReleaseRequest, kept: Kept, goal: Goal, claims: tuple[float, ...]) -> _BookedTables:
    """Plan a release for a goal, on top of what is kept."""
    basis, coin = asked.basis, asked.coin
    held = np.array([_held(kept.answer, asked, subset).grains for subset in basis.subsets], np.float64)
    before = ReleaseDesign(basis, asked.reach, held)
    design, pilot, aimed, looks, more = design_for(basis, coin, goal, held, asked.reach), None, basis, 0, 0
    number = _covering(kept, basis.subsets) if goal.relative and not held.any() else None
    going, needed = number is not None, 0
    if number is not None:
        sharp, weighted = _sharp_enough(asked, kept, goal, kept.shaped[number])
        needed = sum(_more(kept.shaped[number].state, asked, sharp.grains).values())
        going = not needed or kept.shaped[number].shared is None or set(basis.subsets) == set(kept.shaped[number].state)
    if going:
        design, aimed = sharp, weighted
        looks = sum(_held(kept.pilot, asked, subset).grains for subset in basis.subsets)
    elif goal.relative and design.total > before.total:
        shaping = not held.any() and asked.many <= MOST_SHAPED
        pilot = Pilot(basis, coin, goal, asked.reach, held, finer=shaping)
        told = told_by(asked, kept.pilot)
        looks = sum(_held(kept.pilot, asked, subset).grains for subset in basis.subsets)
        number = len(kept.shaped) if shaping else None
        if pilot.next(*told) is not None:
            more = sum(_more(kept.pilot, asked, pilot.most).values())
        elif not shaping:
            design, aimed = pilot.design(*told), pilot.aimed(*told)
        needed = sum(_more(kept.answer, asked, design.grains).values()) + more
        needed = max(needed, _allowed(pilot) - looks) if shaping else needed
    else:
        needed = sum(_more(kept.answer, asked, design.grains).values())
    priced = asked.priced(goal, needed)
    made = ReleasePlan(**priced, design=design, before=before, aimed=aimed, pilot=looks + more)
    found = _BookedTables(asked, made, kept, claims, "cell")
    found.pilot, found.shaped = pilot, number
    return found


def _allowed(pilot: Pilot) -> int:
    """Return the most grains of a release with noise by cell and of its pilot: a fiftieth above what all cells at the
    absolute target cost.
    """
    return math.ceil(pilot.floor(pilot.nothing).total * WORST_MOST)


def _covering(kept: Kept, subsets: tuple[tuple[int, ...], ...]) -> int | None:
    """Return the first of the shaped residuals that have all of some subsets and the fewest more; or None."""
    fitting = (at for at, one in enumerate(kept.shaped) if set(subsets) <= one.state.keys())
    return min(fitting, key=lambda at: len(kept.shaped[at].state), default=None)


def _sharp_enough(asked: ReleaseRequest, kept: Kept, goal: Goal, shaped: Shaped) -> tuple[ShapedDesign, Residuals]:
    """Return the design of shaped residuals that has every cell within its width, in the shape that they have; and the
    basis with the weights of tables, going by the pilot.

    Its shares are those that were wanted, which may not have been measured in full where that was interrupted.
    """
    basis = asked.basis
    held = np.array([shaped.state[subset].grains for subset in basis.subsets], np.float64)
    wanted = np.array([shaped.wanted[subset] for subset in basis.subsets], np.float64)
    shapes = {subset: shaped.shapes[subset] for subset in basis.subsets}
    made = ShapedDesign(basis, asked.reach, wanted, shaped.weights, shapes, shaped.shared)
    pilot = Pilot(basis, asked.coin, goal, asked.reach, np.zeros(len(held)))
    told = told_by(asked, kept.pilot)
    level = made.excess(pilot.program(*told).widest)
    grains = _raised(held, wanted, level, together=shaped.shared is not None)
    return replace(made, grains=grains), pilot.aimed(*told)


def _raised(held: Any, wanted: Any, level: float, *, together: bool) -> Any:
    """Return float64[subsets], the grains of residuals at a level of those that were wanted, and no less than are held.

    Args:
        held: float64[subsets], what each residual has.
        wanted: what it was to have, whether or not it was measured so far.
        level: by how much more or less than that suffices.
        together: whether residuals share noise: then all of them get more, or none.
    """
    if level <= CLOSE and bool((held >= wanted).all()):
        return held
    grains = np.maximum(held, np.ceil(wanted * level))
    return np.maximum(grains, np.ceil(held * _LEAST)) if together and bool((grains > held).any()) else grains


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
