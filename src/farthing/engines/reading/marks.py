"""Which marks a file's numbers have: before their decimals, and between their thousands; for its owner to check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    Counted = Mapping[str, int]

_SURE: Final = 0.99
"""The share of the values of a column that have to be numbers."""

_MOST: Final = 5_000
"""How many different values of a column are looked at."""


@dataclass(frozen=True, slots=True)
class NumberMarks:
    """How numbers are written.

    Attributes:
        decimal: what stands before the decimals.
        thousands: what parts thousands; "" where nothing does.
    """

    decimal: str
    thousands: str

    @property
    def parted(self) -> str:
        """The form of a number whose thousands are parted."""
        return rf"[+-]?[1-9][0-9]{{0,2}}({re.escape(self.thousands)}[0-9]{{3}})+({re.escape(self.decimal)}[0-9]*)?"

    @property
    def plain(self) -> str:
        """The form of a number whose thousands are not parted; one with leading zeros is a code."""
        return rf"[+-]?((0|[1-9][0-9]*)({re.escape(self.decimal)}[0-9]*)?|{re.escape(self.decimal)}[0-9]+)"

    def fits(self, texts: Counted) -> bool:
        """Return whether nearly all texts of a column are such numbers."""
        form = re.compile(f"({self.plain})([eE][+-]?[0-9]{{1,3}})?" + (f"|{self.parted}" if self.thousands else ""))
        numbers = sum(many for text, many in texts.items() if form.fullmatch(text))
        return numbers > 0 and numbers >= _SURE * sum(texts.values())

    def shows(self, texts: Counted) -> bool:
        """Return whether numbers of a column can hardly be meant otherwise.

        The decimals of one are not three, or begin with a zero before them; or one has both marks; or thousands are
        parted wherever there are any, and some numbers have none.
        """
        mark = re.escape(self.decimal)
        if any(re.fullmatch(rf"[+-]?([0-9]*{mark}([0-9]{{1,2}}|[0-9]{{4,}})|0*{mark}[0-9]+)", text) for text in texts):
            return True
        if not self.thousands:
            return False
        parted = [text for text in texts if re.fullmatch(self.parted, text)]
        if any(self.decimal in text for text in parted):
            return True
        small = [text for text in texts if re.fullmatch(r"[+-]?[0-9]{1,3}", text)]
        both = sum(texts[text] for text in {*parted, *small})
        return bool(parted) and bool(small) and both >= _SURE * sum(texts.values())

    def pointed(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the texts of a column, its numbers with a point before their decimals and no other mark."""
        import pyarrow.compute as pc

        if self == PLAIN:
            return column
        number = pc.match_substring_regex(column, f"^({self.plain}|{self.parted})$")
        bare = pc.replace_substring(column, self.thousands, "") if self.thousands else column
        return pc.if_else(number, pc.replace_substring(bare, self.decimal, "."), column)


PLAIN: Final = NumberMarks(".", "")
_KNOWN: Final = (
    PLAIN, *(NumberMarks(decimal, thousands) for decimal, thousands in (",.", ".,", ".'", ", ", ". ", ",'"))
)  # fmt: skip


def marks_of(columns: Sequence[pa.ChunkedArray]) -> tuple[NumberMarks, frozenset[int]]:
    """Return the marks of most columns' numbers, and the places of columns whose numbers could be meant otherwise.

    "1,234" may be more than a thousand, or less than two: where nothing else in the file tells, such columns are no
    numbers.
    """
    texts = [_counted(column) for column in columns]
    scored = [(sum(map(marks.fits, texts)), sum(marks.fits(each) and marks.shows(each) for each in texts), marks)
              for marks in _KNOWN]  # fmt: skip
    most = max(fits for fits, _, _ in scored)
    best = [(shown, marks) for fits, shown, marks in scored if fits == most]
    _, chosen = max(best, key=lambda each: (each[0], each[1] == PLAIN, each[1].thousands not in "' "))
    twins = [
        marks for shown, marks in best if shown == max(best, key=lambda each: each[0])[0] and _twins(marks, chosen)
    ]
    if not twins:
        return chosen, frozenset()
    doubtful = {place for place, each in enumerate(texts)
                if chosen.fits(each) and not PLAIN.fits(each) and any(marks.fits(each) for marks in twins)}  # fmt: skip
    return (PLAIN if len(doubtful) == most - scored[0][0] else chosen), frozenset(doubtful)


def _twins(marks: NumberMarks, other: NumberMarks) -> bool:
    """Return whether one's decimal mark parts the other's thousands."""
    return PLAIN not in (other, marks) and (marks.decimal, marks.thousands) == (other.thousands, other.decimal)


def _counted(column: pa.ChunkedArray) -> Counted:
    """Return the different values of a column, without the spaces around them, and how often each is there."""
    import pyarrow.compute as pc

    counts = pc.value_counts(pc.utf8_trim_whitespace(column.drop_null()))[:_MOST]
    return {each["values"]: each["counts"] for each in counts.to_pylist()}
