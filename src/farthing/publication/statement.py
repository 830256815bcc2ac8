"""The statement of a publication, for people: one page of HTML that prints well and loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing import tabular
from farthing.tabular import html_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from farthing.publication.facts import GroupPromise, Imprint, Standing
    from farthing.publication.tables import PrintedTable

_STYLE: Final = """
body { font: 11pt/1.45 Georgia, serif; max-width: 46em; margin: 2em auto; padding: 0 1em; color: #111 }
h1, h2, h3, table { font-family: system-ui, sans-serif }
table { border-collapse: collapse; font-size: 9.5pt; margin: .6em 0 }
th, td { padding: .15em .8em .15em 0; border-bottom: 1px solid #ccc; text-align: left }
code { overflow-wrap: anywhere; font-size: 9pt }
pre { white-space: pre-wrap; font-size: 9pt }
.wide { overflow-x: auto }
@media print {
  body { margin: 0; max-width: none }
  .wide { overflow: visible }
  .wide table { font-size: 8pt }
  tr, h2, h3 { break-inside: avoid }
  h2, h3 { break-after: avoid }
}
"""

_SILENT: Final = """
They are about the bounded data. What the bounds cut off is in no number and in no interval.

An interval is about the noise alone: not about how the data were collected, sampled or reported.

A group that is listed and has nobody in it is printed like every other, with noise. A group that is not listed is not
in the tables, and that says nothing of whether it exists.

Sums, differences and shares of printed numbers have wider intervals than the numbers themselves.

What is true of many people can still be learned, and said of each of them. What is hidden is whether any one was in
the data, and what they added.

The promise is about everything that was released from these books. What was published from the same data in another
way adds to it.
""".strip().split("\n\n")
"""What the numbers do not say."""


def statement(tables: Sequence[PrintedTable], names: Sequence[str], imprint: Imprint, standing: Standing) -> str:
    """Return the statement of a publication as a page of HTML.

    Args:
        tables: what is published.
        names: of each the name of its files.
        imprint: what its publisher says of it.
        standing: what the books say.
    """
    title = imprint.title or f"Tables of {standing.table}"
    parts = [
        f"<h1>{html_text(title)}</h1>",
        *(f"<p>{html_text(line)}</p>" for line in (imprint.description, ", ".join(imprint.curators)) if line),
        *_protected(standing),
        *_bounds(tables),
        *_chances(tables),
        "<h2>What the numbers do not say</h2>",
        _list(_SILENT),
        "<h2>Tables</h2>",
        *(_table(table, name) for table, name in zip(tables, names, strict=True)),
        *_books(standing),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(title)}</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def loss_words(facts: Mapping[str, float]) -> str:
    """Return a loss in words.

    >>> loss_words({"mu": 0.25, "epsilon": 1.0613, "delta": 1e-6})
    'epsilon 1.061 at delta 1e-06 (mu 0.25)'
    """
    own = next(iter(facts))
    text = f"epsilon {facts['epsilon']:.4g}"
    return text if own == "epsilon" else f"{text} at delta {facts['delta']:g} ({own} {facts[own]:.4g})"


def _protected(standing: Standing) -> Iterator[str]:
    """Give what was protected, at which budget, and what groups are promised."""
    yield "<h2>What is protected</h2>"
    yield (
        f"<p>The numbers are differentially private. What is hidden is the presence of {html_text(standing.whom)}. "
        "Everything that was and will be released from these books, together, is limited to "
        f"{loss_words(standing.budget)}; {loss_words(standing.spent)} was spent when this was published.</p>"
    )
    yield "<p>Several together are hidden less well. The whole budget promises:</p>"
    rows = (f"<tr><td>{html_text(each.who)}</td><td>{_promise(each)}</td></tr>" for each in standing.promises)
    yield _wide(
        f"<table><thead><tr><th>to hide</th><th>promise</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    yield (
        "<p>An epsilon of e means that whatever anybody concludes from the numbers is at most exp(e) times as likely "
        "as if the hidden ones had not been in the data, but for a chance of about delta.</p>"
    )


def _promise(each: GroupPromise) -> str:
    """Return the promise to a group; at a delta of 1 there is none."""
    if each.delta >= 1:
        return "nothing"
    return f"epsilon {each.epsilon:.4g}" + (f" at delta {each.delta:.3g}" if each.delta else "")


def _bounds(tables: Sequence[PrintedTable]) -> Iterator[str]:
    """Give what the bounds cut, as far as it was said."""
    yield "<h2>What the bounds cut</h2>"
    yield (
        "<p>Each unit counts only up to bounds that were fixed beforehand; what is above them is left out before "
        "anything is counted. Of the tables:</p>"
    )
    yield _list(f"{table.name}: {_cut(table)}" for table in tables)


def _cut(table: PrintedTable) -> str:
    """Return what is said of a table's bounds; the unit is said above."""
    unit, _, rest = table.footnotes[-1].partition("; ")
    return (rest if unit.startswith("privacy unit") else table.footnotes[-1]) or "nothing is cut, each row counts"


def _chances(tables: Sequence[PrintedTable]) -> Iterator[str]:
    """Give how often an interval misses."""
    yield "<h2>How accurate the numbers are</h2>"
    yield _list(f"{table.name}: {table.caption}" for table in tables)
    yield "<p>The column <code>met</code> of each table says which of its rows reach the target.</p>"
    yield (
        "<p>A confidence is the chance that an interval holds the number that would be counted without noise. Where it "
        "is not said to be for all groups at once, it is for each by itself: of many intervals some miss.</p>"
    )


def _table(table: PrintedTable, name: str) -> str:
    """Return a table with its footnotes and files."""
    files = " ".join(f'<a href="tables/{name}.{kind}">{name}.{kind}</a>' for kind in ("csv", "parquet"))
    return (
        f"<h3>{html_text(table.name)}</h3>\n<pre>{html_text(table.sql)}</pre>\n"
        f"{_wide(tabular.html(table.rows, most=None))}\n{_list(table.footnotes)}\n<p>{files}</p>"
    )


def _wide(table: str) -> str:
    """Return a table that a narrow screen moves by itself, rather than cut it off."""
    return f'<div class="wide">{table}</div>'


def _books(standing: Standing) -> Iterator[str]:
    """Give the head of the ledger, to be noted elsewhere."""
    yield "<h2>The books</h2>"
    table, data, day, head = map(html_text, (standing.table, standing.data, standing.day, standing.head))
    yield (
        f"<p>Table {table}, state {data} of the data, as of {day}. The ledger had {standing.records:,} records, and "
        f"this head:</p>\n<p><code>{head}</code></p>"
    )
    yield (
        "<p>Note the head where nobody can change it. <code>farthing verify --head</code> with it says later that "
        "nothing before it was rewritten.</p>"
    )
    yield f"<p>Made by farthing {html_text(standing.version)}.</p>"


def _list(lines: Iterable[str]) -> str:
    """Return lines as a list."""
    return "<ul>" + "".join(f"<li>{html_text(line)}</li>" for line in lines) + "</ul>"
