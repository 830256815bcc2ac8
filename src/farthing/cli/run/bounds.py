"""What `farthing bounds` does: estimates what bounds cut, and prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input import typed
from farthing.cli.input.options.question import QuestionOptions
from farthing.cli.input.question import groupings, kinds_of, listed_bounds, question_keys, require_bounds
from farthing.cli.input.session import opened
from farthing.errors import InvalidBounds, InvalidOption
from farthing.privacy.words import state

if TYPE_CHECKING:
    from farthing.accuracy.contribution_report import Share
    from farthing.cli.input.config import Config
    from farthing.cli.input.options.bounds import BoundsOptions
    from farthing.query.bounding import Bounds
    from farthing.session import Session
    from farthing.session.answering.contribution_report import Cut


def bounds(value: str | None, looked: BoundsOptions, config: str | None, *, as_json: bool) -> None:
    """Print what bounds cut, and what it cost to know."""
    chosen = settings.read(config)
    wanted = QuestionOptions.of(looked)
    _refuse_rows(value, chosen)
    _refuse_private(wanted)
    looked_at = listed_bounds(wanted, chosen)
    by = groupings(looked.by or ())
    require_bounds(looked_at, chosen, grouped=bool(by), findable=False)
    price = None if looked.loss is None else typed.loss("--loss", looked.loss)
    confidence = 0.95 if looked.confidence is None else typed.fraction("--confidence", looked.confidence)
    _refuse_unclamped(value, looked_at)
    with opened(chosen) as session:
        cut = session.bounds_report(
            value,
            loss=price,
            confidence=confidence,
            by=by or None,
            keys=question_keys(wanted, kinds_of(by, session), chosen, session),
            where=looked.where,
            bounds=looked_at,
        )
        facts = _facts(cut, session)
    if as_json:
        show.echo_json(facts)
        return
    out = show.console()
    out.print(str(cut.report), soft_wrap=True)
    out.print(f"paid {show.price(facts['paid'])}")
    out.print(f"left {show.price(facts['remaining'])}")


def _refuse_rows(value: str | None, chosen: Config) -> None:
    """Refuse to pay for what is known: one row as unit is in one group, once."""
    if chosen.unit == "row" and value is None:
        raise InvalidOption(
            "where each row is a unit only clamps can cut",
            rule="a row counts once, in one group",
            next_step="name a column, as in: farthing bounds fare --lower 0 --upper 200",
        )


def _refuse_private(wanted: QuestionOptions) -> None:
    """Refuse groups that are not known yet."""
    if wanted.private:
        raise InvalidOption(
            "bounds of groups that are not known yet",
            rule="a report on groups needs their keys",
            got="--keys private",
            next_step="list the keys, or look at the bounds without --by",
        )


def _refuse_unclamped(value: str | None, bounds: Bounds) -> None:
    """Refuse a value without the clamps that are to be looked at."""
    if value is not None and bounds.lower is None:
        raise InvalidBounds(
            "--lower and --upper are missing",
            rule="a report on a value says what its clamps cut",
            got=value,
            next_step="--lower 0 --upper 200, with numbers that fit the data",
        )


def _facts(cut: Cut, session: Session) -> dict[str, Any]:
    """Return a report as plain values."""
    report, left = cut.report, session.status()["remaining"]
    shares = ("units_groups", "groups", "rows", "units_value", "value")
    return {
        "cut": {name: _share(getattr(report, name)) for name in shares},
        "total_rows": report.total_rows,
        "confidence": report.confidence,
        "hidden": report.hidden,
        "paid": state(cut.paid, left["delta"]),
        "remaining": left,
    }


def _share(share: Share | None) -> dict[str, float] | None:
    """Return a share with its interval as plain values."""
    return None if share is None else {"value": share.value, "lower": share.lower, "upper": share.upper}
