"""Group keys that follow from the calendar: public whatever the data hold."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.errors import InvalidKeys

if TYPE_CHECKING:
    from collections.abc import Callable

Moment: TypeAlias = date | datetime
MOST: Final = 10**6

_FIXED: Final = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_WITHIN_DAYS: Final = ("hour", "minute", "second")
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}


def calendar(first: Moment | str, last: Moment | str, unit: str = "day") -> list[Moment]:
    """Return the beginnings of all days, months, hours ... from first to last, for `keys=`.

    They are what DATE_TRUNC(unit, x) gives for x from first to last, both included: dates where both ends are dates,
    else times.

    Args:
        first: a date or a time without zone, or its ISO text.
        last: the same kind, not before the first.
        unit: second, minute, hour, day, week (from Monday), month, quarter or year.

    Raises:
        InvalidKeys: an unknown unit, no date, last before first, or more than a million.

    >>> calendar("2013-01-15", "2013-04-02", "month")
    [datetime.date(2013, 1, 1), datetime.date(2013, 2, 1), datetime.date(2013, 3, 1), datetime.date(2013, 4, 1)]
    """
    ends = _read(first), _read(last)
    if isinstance(ends[0], datetime) != isinstance(ends[1], datetime):
        raise _refused("one end is a date and the other a time", f"{first!r}, {last!r}", "give two dates or two times")
    if unit not in _FIXED and unit not in _MONTHS:
        raise _refused("unknown unit", repr(unit), "one of " + ", ".join([*_FIXED, *_MONTHS]))
    if not isinstance(ends[0], datetime) and unit in ("second", "minute", "hour"):
        raise _refused("dates have no hours", f"{unit} of {first!r}", 'give times, as in "2013-01-01 00:00:00"')
    if ends[1] < ends[0]:
        raise _refused("the last moment is before the first", f"{first!r} to {last!r}", "swap them")
    found = [_truncated(ends[0], unit)]
    onward = _step(unit)
    while (following := onward(found[-1])) <= ends[1]:
        found.append(following)
        if len(found) > MOST:
            raise _refused("too many moments", f"more than {MOST:,}", "take a larger unit, or a shorter time")
    return found


def _read(moment: Moment | str) -> Moment:
    """Return a date or time."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        raise _refused("a time with a zone", repr(moment), "give times without zone, in UTC where the table has zones")
    if isinstance(moment, date):
        return moment
    try:
        return date.fromisoformat(moment) if len(moment) == len("2013-01-01") else datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        raise _refused("no date", repr(moment)[:80], 'write "2013-01-31" or "2013-01-31 06:00:00"') from None


def _truncated(moment: Moment, unit: str) -> Moment:
    """Return the beginning of the unit that holds a moment."""
    if isinstance(moment, datetime):
        keep = ("day", "hour", "minute", "second").index(unit) if unit in _WITHIN_DAYS else 0
        hour, minute, second = (part if place < keep else 0 for place, part in enumerate(moment.timetuple()[3:6]))
        moment = datetime.combine(moment.date(), time(hour, minute, second))
    if unit == "week":
        return moment - timedelta(days=moment.weekday())
    if unit in _MONTHS:
        months = _MONTHS[unit]
        return moment.replace(month=(moment.month - 1) // months * months + 1, day=1)
    return moment


def _step(unit: str) -> Callable[[Moment], Moment]:
    """Return the function from one beginning to the next."""
    if unit in _FIXED:
        return lambda moment: moment + _FIXED[unit]

    def onward(moment: Moment) -> Moment:
        months = moment.year * 12 + moment.month - 1 + _MONTHS[unit]
        return moment.replace(year=months // 12, month=months % 12 + 1)

    return onward


def _refused(what: str, got: str, next_step: str) -> InvalidKeys:
    """Return the refusal of a calendar."""
    return InvalidKeys(
        what, rule="a calendar runs from a first to a last moment in whole units", got=got, next_step=next_step
    )
