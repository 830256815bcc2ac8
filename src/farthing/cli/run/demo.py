"""What `farthing demo` does: the main job, end to end, on real flights; all it says comes from released answers."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing import flights as data
from farthing.cli import show
from farthing.cli.input.charts import chart_path
from farthing.cli.run.progress import progress
from farthing.errors import InvalidOption
from farthing.privacy.words import state

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from rich.console import Console

    from farthing.release import Answer
    from farthing.session import Progress, Session

FLIGHTS: Final = "SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest"
PLANES: Final = "SELECT dest, COUNT(*) AS planes FROM flights GROUP BY dest"
EPSILON, DELTA = 1, 1e-6
RELATIVE, ABSOLUTE = 0.1, 100
MAX_GROUPS, MAX_ROWS, TOO_MANY_ROWS = 30, 1, 400
LARGE, SMALL = 12, 3

_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class DemoStage:
    """What every part of the demo works with.

    Attributes:
        out: where it tells; quiet with --json.
        table: the flights.
        airports: the public keys.
        folder: where its ledgers are.
    """

    out: Console
    table: pa.Table
    airports: pa.Array
    folder: Path

    @property
    def keys(self) -> dict[str, pa.Array]:
        """The public groups of both questions."""
        return {"dest": self.airports}

    def say(self, text: str = "", style: str | None = None) -> None:
        """Tell something."""
        self.out.print(text, style=style)

    def head(self, text: str) -> None:
        """Begin a part."""
        self.out.print(f"\n{text}", style="bold")


def _table(folder: Path) -> pa.Table:
    """Return destination and plane of every flight; a plane that is not known is NULL."""
    import pyarrow as pa

    return data.flights(folder, {"dest": pa.string(), "tailnum": pa.string()})


def demo(*, as_json: bool, chart: str | None, keep: str | None) -> None:
    """Run the demo; refuse what cannot be done before anything is read."""
    drawn = chart_path(chart)
    package = data.data_folder()
    out = show.console(quiet=as_json, width=_WIDTH)
    with _ledgers(keep) as folder:
        stage = DemoStage(out, _table(package), data.listed(package, "airports", "faa"), folder)
        first, result = _flights(stage)
        result["planes"] = _planes(stage, first)
    stage.head("Yours")
    stage.say("farthing init TABLE --epsilon 1 --delta 1e-6     the same for a Parquet or CSV file of your own")
    if keep is not None:
        stage.say(f"farthing status {folder / 'flights.ledger'}     the books of this demo")
    if as_json:
        show.echo_json(result)
    if drawn is not None:
        first.chart(drawn)
        stage.say(f"drawn: {drawn}")


@contextmanager
def _ledgers(keep: str | None) -> Iterator[Path]:
    """Give a folder for the two ledgers: a temporary one, or the one to keep."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="farthing-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    folder = Path(keep)
    for name in ("flights.ledger", "planes.ledger"):
        if (folder / name).exists():
            raise InvalidOption(
                "this folder holds the ledgers of an earlier demo",
                rule="the demo starts with a whole budget",
                got=folder / name,
                next_step="name another folder",
            )
    made = False
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        made = True
    if not made:
        raise InvalidOption(
            "the folder for the ledgers cannot be made",
            got=folder,
            rule="--keep names a new or writable folder",
            next_step="name another folder",
        )
    yield folder


def _session(stage: DemoStage, ledger: str, unit: str | None = None) -> Session:
    """Open the flights under the demo's budget."""
    from farthing.privacy.budget import Budget
    from farthing.query.bounding import Bounds
    from farthing.session import Session

    return Session(
        stage.table,
        unit=unit,
        budget=Budget(epsilon=EPSILON, delta=DELTA),
        bounds=None if unit is None else Bounds(max_groups=MAX_GROUPS, max_rows=MAX_ROWS),
        ledger=stage.folder / ledger,
        name="flights",
    )


def _flights(stage: DemoStage) -> tuple[Answer, dict[str, Any]]:
    """Count flights with one flight as the privacy unit: ask, ask again, ask twice as accurately."""
    stage.say("Flights from New York in 2013, as if they were private. One flight is the privacy unit: the answers")
    stage.say("are about as likely with it as without it, so they do not reveal whether it took place.")
    stage.say(f"Budget for all questions ever: epsilon {EPSILON} at delta {DELTA:g}.")
    with _session(stage, "flights.ledger") as session:
        answer = _first(stage, session)
        stage.head("3. The same again")
        again = session.sql(FLIGHTS, keys=stage.keys, relative=RELATIVE, absolute=ABSOLUTE)
        stage.say(f"paid {_money(again)}: what was released may be shown again free of charge, also next week.")
        refined = _refined(stage, session, answer)
    result = {
        "answers": answer.rows(),
        "paid": _paid(answer),
        "remaining": _left(answer),
        "asked_again": {"paid": _paid(again)},
        "refined": {"answers": refined.rows(), "paid": _paid(refined)},
        "doubling": {"paid": _doubling(answer)},
    }
    return answer, result


def _first(stage: DemoStage, session: Session) -> Answer:
    """Show the plan of the first question, then answer it."""
    stage.head("1. What it would cost")
    stage.say(f'farthing plan "{FLIGHTS}" \\\n    --keys dest=@airports.csv:faa --relative 10% --absolute 100', "cyan")
    stage.say(str(session.plan(FLIGHTS, keys=stage.keys, relative=RELATIVE, absolute=ABSOLUTE)))
    stage.head("2. The answer: within 10 % or 100, whichever is larger, 95 times in 100")
    looks: list[Progress] = []
    with progress() as tick:
        answer: Answer = session.sql(
            FLIGHTS, keys=stage.keys, relative=RELATIVE, absolute=ABSOLUTE, progress=_both(looks.append, tick)
        )
    _tell_looks(stage, looks)
    _tell_rows(stage, answer, SMALL)
    _tell_price(stage, answer)
    return answer


def _both(first: Any, second: Any) -> Any:
    """Return a callback that calls both, where there is a second."""

    def call(seen: Progress) -> None:
        first(seen)
        if second is not None:
            second(seen)

    return call


def _tell_looks(stage: DemoStage, looks: list[Progress]) -> None:
    """Tell how the refinement went."""
    step = max(1, len(looks) // 6)
    shown = sorted({*range(0, len(looks), step), len(looks) - 1}) if looks else []
    stage.say("Noise was lowered look by look; each airport stopped as soon as its own answer was good enough:")
    stage.say(
        ", ".join(f"look {looks[i].look}: {looks[i].done:,} done" for i in shown) + f" of {len(stage.airports):,}."
    )


def _tell_rows(stage: DemoStage, answer: Answer, small: int, large: int = LARGE) -> None:
    """Show the largest answers, then some small ones: from the middle of the list and below."""
    import numpy as np

    order = np.argsort(-answer.cells.estimate, kind="stable")
    rest = np.linspace(0.5 * len(order), 0.8 * len(order), small).astype(int)
    stage.out.print(show.answer_table(answer, [int(i) for i in (*order[:large], *order[rest])]))
    stage.say(f"{large} largest" + (f" and {small} small" if small else "") + f" of {len(order):,} airports", "dim")


def _tell_price(stage: DemoStage, answer: Answer) -> None:
    """Tell who paid what, and why the airports can be listed."""
    from farthing.privacy.loss import Gdp

    rows = {row["dest"]: row for row in answer.rows()}
    large, small = rows["ORD"]["paid"], max(row["paid"] for row in rows.values())
    stage.say(
        f"Each flight to ORD paid epsilon {Gdp(large).epsilon(DELTA):.2g}, a flight to a small airport "
        f"{Gdp(small).epsilon(DELTA):.2g}: large counts need less, since 10 % of them is more (mu {large:.2g} against "
        f"{small:.2g}, {small / large:.0f} times). A flight has one destination: the most expensive one is the price."
    )
    facts = [("paid", _money(answer)), ("left", show.short(answer.remaining, DELTA))]
    if answer.doubling is not None:
        facts.append(
            (
                "doubling",
                f"{show.short(answer.doubling, DELTA)}: fresh noise at twice the loss, until it is good enough",
            )
        )
    stage.out.print(show.facts_table(facts))
    stage.say(
        f"All {len(stage.airports):,} airports of a public table are answered, also those that no flight serves: which "
        "ones these are is private, so an empty airport gets noise like any other, and may come out below zero. "
        "Destinations that the table does not list are not answered."
    )


def _refined(stage: DemoStage, session: Session, answer: Answer) -> Answer:
    """Ask twice as accurately, and pay the difference."""
    stage.head("4. Twice as accurate: within 5 % or 50")
    with progress() as tick:
        refined: Answer = session.sql(
            FLIGHTS, keys=stage.keys, relative=RELATIVE / 2, absolute=ABSOLUTE / 2, progress=tick
        )
    _tell_rows(stage, refined, 0, large=4)
    both = answer.paid + refined.paid
    stage.say(
        f"paid {_money(refined)} on top; together {show.short(both, DELTA)}, about as much as asking for this at once. "
        f"Left: {show.short(refined.remaining, DELTA)}."
    )
    return refined


def _planes(stage: DemoStage, flights: Answer) -> dict[str, Any]:
    """Count planes with a whole plane as the privacy unit, and price what does not fit."""
    stage.head(f"5. Hide a whole plane, with all its flights, in up to {MAX_GROUPS} destinations")
    stage.say(
        f'farthing ask "{PLANES}" \\\n    --keys dest=@airports.csv:faa --relative 10% --absolute 100 --cap all', "cyan"
    )
    stage.say("Flights whose plane is not known belong to no unit and are left out. A second ledger, the same budget.")
    with _session(stage, "planes.ledger", unit="tailnum") as session:
        with progress() as tick:
            answer = session.sql(
                PLANES, keys=stage.keys, relative=RELATIVE, absolute=ABSOLUTE, cap="all", progress=tick
            )
        _tell_rows(stage, answer, 0, large=6)
        more = float(answer.paid.amount / flights.paid.amount)
        stage.say(
            f"paid {_money(answer)}, against {_money(flights)} to hide one flight: {more:.0f} times in mu squared, "
            f"since a plane counts in up to {MAX_GROUPS} destinations. That is more than the tenth of the budget that "
            "a question may use unless it says more, as --cap all does."
        )
        too_dear = _too_dear(stage, session)
    return {"answers": answer.rows(), "paid": _paid(answer), "remaining": _left(answer), "not_asked": too_dear}


def _too_dear(stage: DemoStage, session: Session) -> dict[str, Any]:
    """Show the plan of a question that does not fit; nothing is paid."""
    from farthing.query.bounding import Bounds

    stage.head(f"6. All flights of a plane, up to {TOO_MANY_ROWS} a destination, instead of whether it went there")
    bounds = Bounds(max_groups=MAX_GROUPS, max_rows=TOO_MANY_ROWS)
    plan = session.plan(FLIGHTS, keys=stage.keys, bounds=bounds, relative=RELATIVE, absolute=ABSOLUTE, cap="all")
    stage.say(
        f"Hiding {TOO_MANY_ROWS} rows in each destination costs {TOO_MANY_ROWS}^2 = {TOO_MANY_ROWS**2:,} times as much "
        "at the same accuracy. The plan says so, and what would fit, before anything is paid:"
    )
    stage.say(str(plan))
    return plan.to_dict()


def _money(answer: Answer) -> str:
    """Return what an answer cost, in words."""
    return show.short(answer.paid, DELTA)


def _paid(answer: Answer) -> dict[str, float]:
    """Return what an answer cost, as plain values."""
    return state(answer.paid, answer.delta)


def _left(answer: Answer) -> dict[str, float]:
    """Return what an answer left of the budget, as plain values."""
    return state(answer.remaining, answer.delta)


def _doubling(answer: Answer) -> dict[str, float] | None:
    """Return what the doubling baseline would have paid for the released answers."""
    return None if answer.doubling is None else state(answer.doubling, answer.delta)
