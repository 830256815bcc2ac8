"""What `farthing publish` does: asks the questions of a file, and writes them as a folder with a statement."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli import show
from farthing.cli.failing import in_flags
from farthing.cli.input import config as settings
from farthing.cli.input.options.question import PRIVATE
from farthing.cli.input.session import opened
from farthing.cli.run.ledger import books_of, prices
from farthing.cli.run.progress import progress
from farthing.cli.run.workload import item, own_options, questions, shared_price
from farthing.errors import BudgetExceeded, DataError, InvalidOption
from farthing.folders import beside, taken
from farthing.publication import files
from farthing.publication.facts import GroupPromise, Imprint, Standing
from farthing.publication.tables import Sheet, TableShape, forest, printed
from farthing.query.aftermath import Aftermath
from farthing.query.aggregates import Count, Counts, Sum, least
from farthing.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from farthing.cli.input.config import Config
    from farthing.cli.input.options.publish import PublishOptions
    from farthing.cli.input.options.question import QuestionOptions
    from farthing.cli.run.workload import FileQuestion
    from farthing.ledger.entry import Seal
    from farthing.ledger.store import Ledger
    from farthing.publication.tables import PrintedTable
    from farthing.release import Answer
    from farthing.session import Session
    from farthing.sql import Asked
    from farthing.workload import Workload

_GROUPS: Final = (1, 2, 3, 5, 10)
"""To how many units together the statement says what is promised."""


def publish(file: str, wanted: QuestionOptions, how: PublishOptions, config: str | None) -> None:
    """Ask all questions of a file and make the folder; where it is there already, see that it holds the same."""
    asked, told = questions(Path(file))
    imprint = Imprint.of(told)
    imprint = imprint if how.title is None else replace(imprint, title=how.title)
    chosen = settings.read(config)
    common, price = shared_price(wanted)
    with opened(chosen, allotment=how.allotment) as session:
        drafts = [_Draft.of(each, own_options(each, common), how, chosen, session) for each in asked]
        _require_sums(drafts)
        items = {draft.name: draft.item for draft in drafts}
        planned = session.workload(items, dry_run=True, **price)
        _require_fit(planned)
        if how.dry_run:
            _tell(planned, as_json=how.as_json)
            return
        with _place(Path(how.to), planned) as near:
            tables = printed(_sheets(drafts, _asked(session, items, price)))
            standing = _standing(chosen, session)
            made = files.written(tables, imprint, standing)
            new = _put(near, Path(how.to), made)
    _say(Path(how.to), tables, imprint, standing, new=new, as_json=how.as_json)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A question of the file, as it is asked and printed.

    Attributes:
        name, sql: as in the file.
        item: it, as a session takes it.
        asked: what its text asks.
        shape: how its table is printed.
    """

    name: str
    sql: str
    item: Mapping[str, Any]
    asked: Asked
    shape: TableShape

    @classmethod
    def of(
        cls, each: FileQuestion, wanted: QuestionOptions, how: PublishOptions, chosen: Config, session: Session
    ) -> _Draft:
        """Return a question as it was typed; nothing below zero is a matter of print, so that totals stay unbiased."""
        made, asked = item(each, replace(wanted, nonnegative=False), chosen, session)
        printed = {"whole": how.whole} | dict(each.printed)
        draft = cls(each.name, each.sql, made, asked, TableShape(nonnegative=wanted.nonnegative, **printed))
        unfit = draft.shape.adds_to and (not draft.additive or asked.aftermath != Aftermath())
        if unfit or (draft.shape.nonnegative and not draft.positive):
            raise InvalidOption(
                f"the numbers of {each.name!r} do not add up"
                if unfit
                else f"the numbers of {each.name!r} may be negative",
                rule="adds_to is for COUNT and SUM without HAVING, ORDER BY and LIMIT"
                if unfit
                else "nonnegative is for counts, and for values that are clamped at 0 or above",
                got=", ".join(str(output.aggregate) for output in asked.outputs),
                next_step="leave it out for this question",
            )
        return draft

    @property
    def additive(self) -> frozenset[str]:
        """The columns of which parts add up."""
        return frozenset(each.name for each in self.asked.outputs if isinstance(each.aggregate, Count | Sum))

    @property
    def positive(self) -> frozenset[str]:
        """The columns of which the truth is not negative."""
        return frozenset(each.name for each in self.asked.outputs if least(each.aggregate) >= 0)

    def sheet(self, answer: Answer) -> Sheet:
        """Return the question with its answer."""
        counts = frozenset(each.name for each in self.asked.outputs if isinstance(each.aggregate, Counts))
        return Sheet(self.name, self.sql, answer, self.shape, counts, self.positive, self.additive)


def _require_sums(drafts: Sequence[_Draft]) -> None:
    """Refuse tables that cannot add up to the ones they name, before anything is paid."""
    forest((draft.name, draft.shape) for draft in drafts)
    by_name = {draft.name: draft for draft in drafts}
    for draft in drafts:
        above = by_name.get(draft.shape.adds_to)
        if above is None:
            continue
        theirs = {each.name: each.aggregate for each in above.asked.outputs if each.name in above.additive}
        mine = {each.name: each.aggregate for each in draft.asked.outputs if each.name in draft.additive}
        same = {name for name in mine if mine[name] == theirs.get(name)}
        facts = (draft.asked.where, draft.asked.joins) == (above.asked.where, above.asked.joins)
        if not same or not facts or not _within(draft, above):
            raise InvalidOption(
                f"{draft.name!r} cannot add up to {above.name!r}",
                rule="the same aggregate under the same name, WHERE and joins; its groups are those of the other, with "
                "the same keys, divided further",
                got=f"{draft.sql!r} and {above.sql!r}",
                next_step="mend adds_to, or leave it out; `farthing release` makes tables that share several totals",
            )


def _within(draft: _Draft, above: _Draft) -> bool:
    """Return whether the groups of a table are those of another, divided further, as far as their keys are listed."""
    mine, theirs = draft.item["keys"], above.item["keys"]
    if not draft.asked.by or PRIVATE in (mine, theirs) or not set(above.asked.by) <= set(draft.asked.by):
        return False
    return all(
        set(values) == set(mine[column]) if not isinstance(values, str) else values == mine[column]
        for column, values in (theirs or {}).items()
    )


def _require_fit(planned: Workload) -> None:
    """Refuse a publication of which not everything fits: nothing is asked then."""
    if not planned.complete:
        raise BudgetExceeded(
            "not all questions fit in the budget",
            rule="a publication is whole: every question is priced first; nothing was charged",
            got=in_flags("; ".join(planned.notes)),
            next_step="ask for less accuracy, or allow more with --cap",
            left=planned.remaining,
        )


@contextmanager
def _place(folder: Path, planned: Workload) -> Iterator[Path | None]:
    """Give a folder to write into, before anything is paid; None where one is there that can only be compared."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise taken(folder)
    if folder.is_dir() and any(folder.iterdir()):
        if not all(plan.free for plan in planned.plans.values()):
            raise taken(folder)
        yield None
        return
    with beside(folder) as near:
        yield near


def _put(near: Path | None, folder: Path, made: Mapping[str, bytes]) -> bool:
    """Make the folder, or see that the one that is there holds the same; return whether it is new."""
    if near is not None:
        files.moved(near, folder, made)
    elif not files.holds(folder, made):
        raise taken(folder)
    return near is not None


def _asked(session: Session, items: Mapping[str, Any], price: Mapping[str, Any]) -> Workload:
    """Ask all questions, then once more, free of charge: what is printed is what asking again gives.

    Raises:
        FarthingError: a question failed, or the budget went elsewhere; what was answered stands and is free.
    """
    with progress() as tick:
        done = session.workload(items, progress=tick, **price)
    for error in done.failed.values():
        raise error
    if not done.complete:
        _require_fit(done)
    again = session.workload(items, dry_run=True, **price)
    paid = [name for name, plan in again.plans.items() if not plan.free]
    if paid:
        raise DataError(
            "a question would be charged again",
            rule="a publication can be made again, free of charge",
            got=", ".join(paid),
            next_step="publish these questions with a target that they meet",
        )
    return session.workload(items, **price)


def _sheets(drafts: Sequence[_Draft], done: Workload) -> list[Sheet]:
    """Return the answers as they are to be printed."""
    return [draft.sheet(done[draft.name]) for draft in drafts]


def _standing(chosen: Config, session: Session) -> Standing:
    """Return what the books say, all of it at one head: read again where somebody else asked meanwhile."""
    with books_of(chosen) as books:
        while True:
            seal = books.seal
            made = _standing_of(chosen, session, books, seal)
            if books.seal == seal:
                return made


def _standing_of(chosen: Config, session: Session, books: Ledger, seal: Seal) -> Standing:
    """Return what the books say now."""
    terms, newest, priced = books.terms, books.history(1), prices(books)
    told = [session.guarantee(many, of="budget") for many in _GROUPS]
    spent = session.guarantee(1, of="spent")
    return Standing(
        version=VERSION,
        table=chosen.name,
        data=chosen.version,
        unit=chosen.unit,
        currency=terms.currency,
        budget=priced(terms.budget) | {"epsilon": told[0].epsilon, "delta": told[0].delta},
        spent=priced(books.spent) | {"epsilon": spent.epsilon, "delta": spent.delta},
        promises=tuple(GroupPromise(each.group, each.who, each.epsilon, each.delta) for each in told),
        records=seal.records,
        head=seal.head,
        day=f"{max(entry.closed_at or entry.opened_at for entry in newest):%Y-%m-%d}" if newest else "",
    )


def _tell(planned: Workload, *, as_json: bool) -> None:
    """Print what a publication would cost."""
    if as_json:
        show.echo_json(planned.to_dict())
        return
    for row in planned.rows():
        show.say(f"{row['name']}: {row['question']}, {row['goal']}: {row['state']}, at most {row['worst_price']:.4g}")
    show.say(planned.caption)
    for note in planned.notes:
        show.say(in_flags(note))


def _say(
    folder: Path, tables: Sequence[PrintedTable], imprint: Imprint, standing: Standing, *, new: bool, as_json: bool
) -> None:
    """Print what was made, and what to note."""
    if as_json:
        names = [table.name for table in tables]
        facts = {"folder": str(folder), "new": new, "tables": names, "head": standing.head, "missing": imprint.missing}
        facts["missed"] = _missed(tables)
        show.echo_json(facts | {"spent": dict(standing.spent), "budget": dict(standing.budget)})
        return
    files = f"{show.many(len(tables), 'table')}, statement.html, record.json"
    show.say(f"{'wrote' if new else 'unchanged:'} {folder}: {files}")
    for name, many in _missed(tables).items():
        rows = show.many(many, "row")
        show.say(f"{name}: {rows} short of the target; a larger cap of that question, as in cap = 'all', meets more")
    if imprint.missing:
        show.say(
            f"the record leaves open: {', '.join(imprint.missing)}; a table [publication] of a .toml file tells them"
        )
    show.say(f"spent {show.price(dict(standing.spent))} of {show.price(dict(standing.budget))}")
    show.say(f"note the head of the books elsewhere: {standing.head}")


def _missed(tables: Sequence[PrintedTable]) -> dict[str, int]:
    """Return how many rows of each table miss their target, of those with any."""
    missed = {table.name: table.rows.num_rows - sum(table.rows.column("met").to_pylist()) for table in tables}
    return {name: many for name, many in missed.items() if many}
