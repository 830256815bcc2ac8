"""From a question as it is read to its plan or its answer: bounds first, then the keys, then the numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from farthing.errors import TargetMissed, whole
from farthing.planning import Plan
from farthing.query import AutoBounds
from farthing.query.aggregates import Count, Counts, Sum
from farthing.session.answering import mixed_question
from farthing.session.answering.bounds import FOR_NOW, bounded
from farthing.session.answering.one_question import refuse_hopeless
from farthing.session.core.ceiling import ceiling, require_below_ceiling
from farthing.session.reading.reader import LATER, named_bounds
from farthing.session.reading.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from farthing.planning.release import ReleasePlan
    from farthing.privacy.budget import Budget
    from farthing.query import Bounds
    from farthing.query.aggregates import Aggregate
    from farthing.release import Answer
    from farthing.session.answering.bounds import Read
    from farthing.session.choosing.most_common import Shortlist
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion, QuestionReader
    from farthing.sql import asked as texts
    from farthing.sql.asked import Options

    Asked: TypeAlias = Callable[[Bounds, Any, frozenset[str]], CheckedQuestion]


def count_or_sum(
    reader: QuestionReader,
    by: Any,
    added: tuple[Any, float | None, float | None],
    about: Mapping[str, Any],
    *,
    default: str | None = None,
) -> Read:
    """Return how the count of rows, or the sum of a value with its clamps, is read under given bounds.

    Args:
        reader: of the session.
        by: the grouping, as it was passed.
        added: what is added up, or None, and its clamps.
        about: keys=, where= and the like.
        default: the name of the answer column where the caller names none; None for "count" or "sum".
    """
    value, lower, upper = added
    scalar = None if value is None else reader.value(value)

    def read(bounds: Bounds) -> CheckedQuestion:
        """Return the question under given bounds."""
        made: Aggregate = Count() if scalar is None else Sum(scalar, *reader.range(lower, upper, bounds))
        return reader.call(made, default or ("count" if scalar is None else "sum"), by=by, bounds=bounds, **about)

    return read


def filled(
    given: Bounds | AutoBounds, keys: Any, how: Mapping[str, Any], left: frozenset[str]
) -> tuple[Bounds, Any, dict[str, Any]]:
    """Return bounds, keys and target with which a question is read, with stand-ins for what it leaves out.

    Args:
        given: its bounds.
        keys: its keys.
        how: its target and price.
        left: what it is known to leave out; see `errors.whole`.
    """
    bounds = FOR_NOW if isinstance(given, AutoBounds) else named_bounds(given)
    if "bounds" in left:
        bounds = replace(bounds, max_groups=bounds.max_groups or 1, max_rows=bounds.max_rows or 1)
    if "clamps" in left:
        bounds = replace(bounds, lower=0, upper=1)
    return bounds, LATER if "keys" in left else keys, dict(how) | ({"absolute": 1.0} if "target" in left else {})


def all_read(
    given: Bounds | AutoBounds, keys: Any, how: Mapping[str, Any], asked: Asked, wanted: Callable[..., Request]
) -> tuple[Read, Request]:
    """Return how a question is read under given bounds, and what is wanted of it; refuse all it leaves out at once.

    Args:
        given: its bounds.
        keys: its keys.
        how: its target and price, as they were named.
        asked: reads it under bounds, with keys, and with stand-ins for what it is known to leave out.
        wanted: makes a request of a target and a price.
    """

    def read(bounds: Bounds, left: frozenset[str] = frozenset()) -> CheckedQuestion:
        """Return the question under bounds."""
        under, listed, _ = filled(bounds, keys, {}, left)
        return asked(under, listed, left)

    def begun(left: frozenset[str]) -> Request:
        """Return what is wanted; where something is left out, find out what else is."""
        under, _, stated = filled(given, None, how, left)
        request = wanted(**stated)
        if left:
            read(under, left)
        return request

    return lambda bounds: whole(lambda left: read(bounds, left)), whole(begun)


def all_counted(
    reader: QuestionReader,
    *,
    by: Any,
    added: tuple[Any, float | None, float | None],
    about: Mapping[str, Any],
    given: Bounds | AutoBounds,
    how: Mapping[str, Any],
    wanted: Callable[..., Request],
    default: str | None = None,
) -> tuple[Read, Request]:
    """Return the same of a count or a sum, see `count_or_sum`: how it is read, and what is wanted of it."""

    def asked(under: Bounds, keys: Any, _: frozenset[str]) -> CheckedQuestion:
        """Return the question under bounds, with keys."""
        return count_or_sum(reader, by, added, {**about, "keys": keys}, default=default)(under)

    return all_read(given, about["keys"], how, asked, wanted)


def text_read(
    reader: QuestionReader,
    budget: Budget,
    text: str,
    under: tuple[Any, Bounds | AutoBounds, float | None, float | None],
    how: Mapping[str, Any],
) -> tuple[Read, Request, bool]:
    """Return how a SQL text is read under given bounds, what is wanted of it, and whether only its plan is.

    Args:
        reader: of the session.
        budget: of its books.
        text: the SQL.
        under: keys, bounds, lower and upper that were named beside it.
        how: its target and price, as they were named.
    """
    keys, given, lower, upper = under
    clamps: dict[str, Any] = {name: end for name, end in (("lower", lower), ("upper", upper)) if end is not None}

    def begun(left: frozenset[str]) -> tuple[Request, bool]:
        """Read the question once, with stand-ins for what it leaves out."""
        bounds, listed, stated = filled(given, keys, how, left)
        asked = reader.sql(text, listed, replace(bounds, **clamps)).asked
        assert asked is not None  # noqa: S101  # it was read from SQL
        request = Request.of(**reader.wanted(said(asked.options, budget, stated)))
        request.check_computed(asked.aftermath.comparisons)
        return request, asked.explain

    def read(bounds: Bounds) -> CheckedQuestion:
        """Return the question under given bounds, with the clamps that were named."""
        return reader.sql(text, keys, replace(bounds, **clamps) if clamps else bounds)

    return (read, *whole(begun))


def priced(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Plan | ReleasePlan:
    """Return the plan of a question, or of its release where it has grouping sets; it spends nothing."""
    question, _ = bounded(context, read, given, request, free=True)
    if not question.lists:
        return _planned(context, question, request)
    from farthing.session.answering import grouping_sets

    return grouping_sets.plan(context, question, request)


def planned(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Plan:
    """Return the plan of a question without grouping sets; it spends nothing."""
    return _planned(context, bounded(context, read, given, request, free=True)[0], request)


def _planned(context: Context, question: CheckedQuestion, request: Request) -> Plan:
    """Return the plan of a question without grouping sets, with what is to be said of the numbers that are shown."""
    made = _plan_of_all(context, question, request)
    return made if question.asked is None else reduce(Plan.with_note, question.asked.notes, made)


def _plan_of_all(context: Context, question: CheckedQuestion, request: Request) -> Plan:
    """Return the plan of a question without grouping sets, under its bounds."""
    if question.private:
        from farthing.session.answering import private_keys

        return private_keys.plan(context, question, request)
    ordered = _ordered(context, question, request)
    if ordered is None:
        return mixed_question.plan(context, question.query, request)
    found, whole = ordered
    return (found.made if found.cheaper(whole) else whole).with_note(found.compared(whole))


def _ordered(context: Context, question: CheckedQuestion, request: Request) -> tuple[Shortlist, Plan] | None:
    """Return the shortlist of SQL that shows the first groups only, beside the plan for all; None for anything else."""
    if question.asked is None or question.asked.aftermath.limit is None:
        return None
    from farthing.session.choosing import most_common

    return most_common.ordered(context, question, request)


def answered(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Answer:
    """Answer a question, as HAVING, ORDER BY and LIMIT leave it; the price of chosen bounds is in it."""
    with ceiling(context, request.at_most):
        if request.at_most is not None:
            require_below_ceiling(context, priced(context, read, given, request).worst_price)
        return _answered(context, read, given, request)


def _answered(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Answer:
    """Answer a question, whatever it costs."""
    if isinstance(given, AutoBounds):
        _refuse_hopeless(context, read, request)
    question, paid = bounded(context, read, given, request)
    asked = question.asked

    def shown(answer: Answer) -> Answer:
        """Return the answer as it is shown."""
        whole = replace(answer, paid=answer.paid + paid) if paid else answer
        return whole if asked is None else _shown(whole, asked)

    try:
        return shown(_asked(context, question, request))
    except TargetMissed as missed:
        missed.answer = shown(missed.answer)
        raise


def _shown(answer: Answer, asked: texts.Asked) -> Answer:
    """Return an answer, and those that sharpen it, as HAVING, ORDER BY, LIMIT and ROUND leave it."""
    about = "; ".join([answer.about, *asked.notes])
    told = replace(answer, about=about).arranged(asked.aftermath, asked.columns)
    return replace(told, _refine=lambda **changes: _shown(answer.refine(**changes), asked))


def _asked(context: Context, question: CheckedQuestion, request: Request) -> Answer:
    """Answer a question in the way for its kind."""
    if question.lists:
        from farthing.session.answering import grouping_sets

        return grouping_sets.ask(context, question, request)
    if question.private:
        from farthing.session.answering import private_keys

        return private_keys.ask(context, question, request)
    ordered = _ordered(context, question, request)
    if ordered is None or not ordered[0].cheaper(ordered[1]):
        return mixed_question.ask(context, question.query, request)
    from farthing.session.choosing import most_common

    return most_common.ask(context, ordered[0], request, ordered[0].compared(ordered[1]))


def _refuse_hopeless(context: Context, read: Read, request: Request) -> None:
    """Refuse counts that would be out of reach under any bounds, before bounds are chosen."""
    tried = read(FOR_NOW)
    if not tried.private and all(isinstance(output.aggregate, Counts) for output in tried.outputs):
        refuse_hopeless(planned(context, read, FOR_NOW, request), spend=request.spend)


def said(options: Options, budget: Budget, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a question is to be answered: what its text says, and over that what its caller says.

    An epsilon in the text is a cap where an accuracy is asked for, and else the price that is named.
    """
    facts = {name: getattr(options, name) for name in ("relative", "absolute", "confidence", "max_epsilon")}
    found = {name: value for name, value in facts.items() if value is not None} | dict(how)
    if options.epsilon is None or "loss" in found or "cap" in found or "max_epsilon" in found:
        return found
    loss = budget.loss(options.epsilon) if options.delta is None else budget.loss_at(options.epsilon, options.delta)
    asked = any(name in found for name in ("relative", "absolute", "rank"))
    return found | ({"cap": loss} if asked else {"loss": loss})
