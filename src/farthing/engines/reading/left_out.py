"""Lines of a CSV that do not fit how it is read, for the owner of the table alone: where they are, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from farthing.engines.reading.lines import blocks, clean, in_utf8
from farthing.engines.reading.records import fields
from farthing.engines.reading.source import split
from farthing.query.reading import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.engines.reading.source import CsvFiles
    from farthing.query.reading import Csv

MOST_SHOWN: Final = 5
"""How many lines are shown as examples."""


@dataclass(frozen=True, slots=True)
class LinesLeftOut:
    """The lines of a CSV table that make none of its rows.

    Attributes:
        lines: how many lines hold something, the headers left out.
        dropped: how many of them are left out.
        examples: the first of them: number of the line in its file, and what is wrong with it.
    """

    lines: int
    dropped: int
    examples: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        reasons = dict.fromkeys(why for _, why in self.examples)
        told = [(why, [f"{number:,}" for number, same in self.examples if same == why]) for why in reasons]
        shown = [f"line{'s' * (len(at) > 1)} {', '.join(at)}: {why}" for why, at in told]
        return "; ".join([*shown, *(["and more"] if self.dropped > len(self.examples) else [])])


def left_out(csv: CsvFiles) -> LinesLeftOut:
    """Read the whole files, and return which lines are left out."""
    lines, dropped, examples = 0, 0, list[tuple[int, str]]()
    for path in csv.files:
        number = 2
        for block in blocks(path):
            held = sum(1 for line in block.split(b"\n") if line.strip(b"\r"))
            fitting = clean(in_utf8(block, csv.reading.encoding), csv.reading.quote, str(csv.reading.delimiter))
            lost = held - fields(fitting, csv.reading, len(csv.names), (0,)).num_rows
            if lost and len(examples) < MOST_SHOWN:
                examples += list(_wrong(block, number, csv.reading, len(csv.names)))[: MOST_SHOWN - len(examples)]
            lines, dropped, number = lines + held, dropped + lost, number + block.count(b"\n")
    return LinesLeftOut(lines, dropped, tuple(examples))


def _wrong(block: bytes, number: int, reading: Csv, width: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block that are left out, and why."""
    for place, line in enumerate(block.split(b"\n")):
        if not line.strip(b"\r"):
            continue
        kept = clean(in_utf8(line + b"\n", reading.encoding), reading.quote, str(reading.delimiter))
        if not kept:
            yield number + place, _why(line, reading)
        elif len(found := split(kept, reading)) != width:
            yield number + place, f"{len(found)} field{'s' * (len(found) != 1)}, where the header has {width}"


def _why(line: bytes, reading: Csv) -> str:
    """Return why a line is not a record by itself."""
    if len(line) > MAX_LINE:
        return "more than 1 MiB"
    if b"\0" in line:
        return "a NUL"
    try:
        in_utf8(line, reading.encoding).decode()
    except UnicodeDecodeError:
        return f"bytes that are not {reading.encoding}"
    if b"\r" in line.removesuffix(b"\r"):
        return "a CR that ends no line"
    return "a quote out of place, or a line break inside quotes"
