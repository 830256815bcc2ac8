"""`farthing bounds`: what the bounds of a question cut, estimated privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.cli import config as settings
from farthing.cli import options, show
from farthing.cli.opening import listed_bounds, opened, question_keys, require_bounds, schema_of
from farthing.errors import InvalidBounds, InvalidOption
from farthing.privacy.words import state

if TYPE_CHECKING:
    from farthing.accuracy.contributions import Share
    from farthing.cli.config import Config
    from farthing.cli.wanted import Wanted
    from farthing.query.bounding import Bounds
    from farthing.session import Session
    from farthing.session.spreading import Cut


@dataclass(frozen=True, slots=True)
class Looked:
    """Which question's bounds are looked at, and at what price, as it was typed."""

    value: str | None
    by: tuple[str, ...]
    where: str | None
    loss: str | None
    confidence: str | None

    @property
    def groupings(self) -> dict[str, str]:
        """The grouping columns by name: columns as they are, expressions by the name before "="."""
        found: dict[str, str] = {}
        for text in self.by:
            name, _, expression = (part.strip() for part in text.partition("="))
            if not name or name in found:
                raise InvalidOption(
                    "--by names a column twice" if name else "--by names no column",
                    rule="COLUMN, or NAME=EXPRESSION",
                    got=text,
                    next_step="--by zone, or --by month=\"DATE_TRUNC('month', day)\"",
                )
            found[name] = expression or _quoted(name)
        return found


def bounds(looked: Looked, wanted: Wanted, config: str | None, *, as_json: bool) -> None:
    """Print what bounds cut, and what it cost to know."""
    chosen = settings.read(config)
    _refuse_rows(looked, chosen)
    _refuse_private(wanted)
    looked_at = listed_bounds(wanted, chosen)
    by = looked.groupings
    require_bounds(looked_at, chosen, grouped=bool(by))
    price = None if looked.loss is None else options.loss("--loss", looked.loss)
    confidence = 0.95 if looked.confidence is None else options.fraction("--confidence", looked.confidence)
    _refuse_unclamped(looked, looked_at)
    with opened(chosen) as session:
        cut = session.bounds_report(
            looked.value,
            loss=price,
            confidence=confidence,
            by=by or None,
            keys=question_keys(wanted, _kinds(by, session), chosen, session),
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


def _refuse_rows(looked: Looked, chosen: Config) -> None:
    """Refuse to pay for what is known: one row as unit is in one group, once."""
    if chosen.unit == "row" and looked.value is None:
        raise InvalidOption(
            "where each row is a unit only clamps can cut",
            rule="a row counts once, in one group",
            next_step="name a column, as in: farthing bounds fare --lower 0 --upper 200",
        )


def _refuse_private(wanted: Wanted) -> None:
    """Refuse groups that are not known yet."""
    if wanted.private:
        raise InvalidOption(
            "bounds of groups that are not known yet",
            rule="a report on groups needs their keys",
            got="--keys private",
            next_step="list the keys, or look at the bounds without --by",
        )


def _refuse_unclamped(looked: Looked, bounds: Bounds) -> None:
    """Refuse a value without the clamps that are to be looked at."""
    if looked.value is not None and bounds.lower is None:
        raise InvalidBounds(
            "--lower and --upper are missing",
            rule="a report on a value tells what its clamps cut",
            got=looked.value,
            next_step="--lower 0 --upper 200, with numbers that fit the data",
        )


def _kinds(by: dict[str, str], session: Session) -> dict[str, str]:
    """Return the types of grouping columns."""
    from farthing.query.expressions import type_of
    from farthing.sql import parse_scalar

    schema = schema_of(session)
    return {name: type_of(parse_scalar(text, schema), schema).value for name, text in by.items()}


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


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
