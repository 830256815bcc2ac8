"""What `farthing select` does: a choice from the table that is paid for, or probabilities of public scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input import typed
from farthing.cli.input.charts import chart_path
from farthing.cli.input.options.question import QuestionOptions
from farthing.cli.input.question import groupings, kinds_of, listed_bounds, question_keys, require_bounds
from farthing.cli.input.session import opened
from farthing.errors import InvalidOption, InvalidTarget
from farthing.privacy.words import state

if TYPE_CHECKING:
    from pathlib import Path

    from farthing.chosen import Chosen
    from farthing.cli.input.options.select import SelectOptions

MOST_SCORES = 1_000
"""A table of more probabilities helps nobody."""


def select(column: str | None, asked: SelectOptions, config: str | None, *, as_json: bool, chart: str | None) -> None:
    """Choose the largest groups of the table, or show how a choice among public scores goes."""
    if (column is None) == (asked.scores is None):
        raise InvalidOption(
            "there is nothing to choose from",
            rule="a grouping column of the table, or --scores that anyone may see",
            got="both" if column else "neither",
            next_step="farthing select zone -k 3 --within 50, or farthing select --scores 120,100,90 --epsilon 0.1",
        )
    path = chart_path(chart)
    if asked.scores is not None:
        _show_probabilities(asked, asked.scores, as_json=as_json, chart=path)
        return
    wanted = QuestionOptions.of(asked)
    chosen_from = settings.read(config)
    bounds = listed_bounds(wanted, chosen_from)
    require_bounds(bounds, chosen_from, grouped=True, findable=False)
    by = groupings((column or "",))
    with opened(chosen_from) as session:
        chosen = session.top_k(
            by,
            _k(asked.k),
            keys=question_keys(wanted, kinds_of(by, session), chosen_from, session),
            value=asked.value,
            where=asked.where,
            bounds=bounds,
            **_how(asked),
        )
    if as_json:
        show.echo_json(_facts(chosen))
    else:
        _show(chosen)
    if path is not None:
        _draw_prices(chosen, path)


def _k(text: str) -> int:
    """Return how many groups are wanted."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise InvalidTarget("-k is not a number of groups", rule="a whole number >= 1", got=text, next_step="-k 10")
    return int(text)


def _how(asked: SelectOptions) -> dict[str, Any]:
    """Return how surely, and at what price at most."""
    found = {
        "within": None if asked.within is None else typed.absolute(asked.within),
        "order_correct": asked.order_correct and typed.fraction("--order-correct", asked.order_correct),
        "confidence": asked.confidence and typed.fraction("--confidence", asked.confidence),
        "epsilon": None if asked.epsilon is None else typed.amount("--epsilon", asked.epsilon),
        "cap": None if asked.cap is None else typed.cap(asked.cap),
        "max_epsilon": None if asked.max_epsilon is None else typed.amount("--max-epsilon", asked.max_epsilon),
    }
    return {name: value for name, value in found.items() if value is not None}


def _facts(chosen: Chosen) -> dict[str, Any]:
    """Return a choice as plain values."""
    return {
        "chosen": chosen.rows(),
        "goal": chosen.goal,
        "proved": chosen.proved,
        "ahead": None if chosen.ahead is None else chosen.ahead.tolist(),
        "settled": None if chosen.settled is None else chosen.settled.tolist(),
        "paid": state(chosen.paid, chosen.delta),
        "remaining": state(chosen.remaining, chosen.delta),
        "compared": [{"name": name, "price": state(price, chosen.delta)} for name, price in chosen.compared],
        "about": chosen.about,
    }


def _show(chosen: Chosen) -> None:
    """Print a choice: its table, its promise, its price."""
    out, table = show.console(), chosen.to_arrow()
    heads = [(name, place == 0) for place, name in enumerate(table.column_names)]
    empty = {"rank": "", "rank_of_choice": ""}  # of a choice that tells no order
    rows = [
        [empty.get(name, "NULL") if value is None else str(value) for name, value in row.items()]
        for row in table.to_pylist()
    ]
    out.print(show.columns_table(heads, rows))
    out.print(chosen.caption)
    if chosen.proved is not None:
        out.print("proved by released intervals" if chosen.proved else "not proved: the leads are too small")
    for name, price in chosen.compared:
        out.print(f"{show.money(price, chosen.delta)}  {name}", style="dim")
    out.print(f"paid {show.money(chosen.paid, chosen.delta)}")
    out.print(f"left {show.money(chosen.remaining, chosen.delta)}")
    out.print(chosen.about, style="dim")


def _draw_prices(chosen: Chosen, path: Path) -> None:
    """Draw the prices of the selections that were compared, or that of the only one."""
    from farthing import charts

    prices = chosen.compared or (("refined counts" if chosen.proved is not None else "choice", chosen.paid),)
    picture = charts.prices_chart(
        {name: price.value for name, price in prices}, parameter=chosen.paid.parameter, title=chosen.caption
    )
    charts.save(picture, path)


def _show_probabilities(asked: SelectOptions, text: str, *, as_json: bool, chart: Path | None) -> None:
    """Print, and draw, how likely each of some public scores is chosen, by two mechanisms side by side."""
    from farthing.mechanisms import Exponential, PermuteAndFlip

    if asked.epsilon is None:
        raise InvalidTarget(
            "--scores without a price", rule="--epsilon names it", got=text, next_step="--scores 120,100 --epsilon 0.1"
        )
    epsilon = typed.amount("--epsilon", asked.epsilon)
    sensitivity = typed.amount("--sensitivity", asked.sensitivity)
    scores = _scores(text)
    found = {
        "exponential": Exponential(epsilon).probabilities(scores, sensitivity, monotone=asked.monotone).tolist(),
        "permute and flip": PermuteAndFlip(epsilon)
        .probabilities(scores, sensitivity, monotone=asked.monotone)
        .tolist(),
    }
    regrets = {
        name: sum(chance * (max(scores) - score) for chance, score in zip(chances, scores, strict=True))
        for name, chances in found.items()
    }
    if as_json:
        show.echo_json({"scores": scores, "epsilon": epsilon, "probabilities": found, "regret": regrets})
    else:
        _print_probabilities(scores, found, regrets)
    if chart is not None:
        from farthing import charts

        title = f"epsilon {epsilon:g}, sensitivity {sensitivity:g}" + (", monotone" if asked.monotone else "")
        charts.save(charts.selection_chart(scores, found, title=title), chart)


def _print_probabilities(scores: list[float], found: dict[str, list[float]], regrets: dict[str, float]) -> None:
    """Print probabilities as a table, and how far below the best a choice is to be expected."""
    out = show.console()
    heads = [("score", True), *((name, True) for name in found)]
    rows = [[f"{score:,.10g}", *(f"{column[place]:.4g}" for column in found.values())]
            for place, score in enumerate(scores)]  # fmt: skip
    out.print(show.columns_table(heads, rows))
    out.print("expected below the best: " + ", ".join(f"{regret:.4g} ({name})" for name, regret in regrets.items()))


def _scores(text: str) -> list[float]:
    """Return public scores, typed with commas between them."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= MOST_SCORES:
        raise InvalidOption(
            "--scores are not numbers",
            rule=f"up to {MOST_SCORES:,} numbers with commas between them",
            got=text[:80],
            next_step="--scores 120,100,90",
        )
    return found
