"""What `farthing groups` does: each mechanism set to one target, and what it costs by size."""

from __future__ import annotations

import csv
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.input.charts import chart_path
from farthing.cli.input.options.groups import MECHANISMS
from farthing.errors import DataError, InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from farthing.cli.input.options.groups import GroupsOptions
    from farthing.mechanisms.relative_error import Metric

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

_DRAWN: Final = 97  # sizes on a curve of the chart
_LARGEST: Final = 1 << 52


@dataclass(frozen=True, slots=True)
class GroupsTarget:
    """What is compared: relative * max(size, x0) is the error that each mechanism is set to.

    Attributes:
        relative: the relative error, in (0, 1).
        x0: the size below which the absolute error relative * x0 is fine.
        metric: "mae", "rmse" or ("ci", confidence).
        mechanisms: names out of `MECHANISMS`.
    """

    relative: float
    x0: float
    metric: Metric
    mechanisms: tuple[str, ...]

    @property
    def rms(self) -> float:
        """How far off Gaussian noise of one standard deviation is, inverted: the sd over the error in the metric."""
        from scipy.special import ndtri

        if isinstance(self.metric, tuple):
            return 1 / float(ndtri((1 + self.metric[1]) / 2))
        return math.sqrt(math.pi / 2) if self.metric == "mae" else 1.0

    def wanted(self, sizes: Integers) -> Floats:
        """Return the error that is asked for at each size."""
        return np.asarray(self.relative * np.maximum(sizes, self.x0))


@dataclass(frozen=True, slots=True)
class GroupsComparison:
    """Every mechanism at every size.

    Attributes:
        sizes: int64[sizes].
        target: the error that was asked for at each size, in records.
        rho: by mechanism, the zCDP of a member of a group of each size.
        error: by mechanism, its error at each size in the metric, in records.
        worst: by mechanism, its rho at size 0 or 1: what a filter that holds for everybody charges.
        settings: by mechanism, its parameters.
        oracle: rho of a Gaussian that knows the size and has just the error.
        lower_bound: the least rho of any unbiased mechanism with the root mean square error of that Gaussian.
    """

    sizes: Integers
    target: Floats
    rho: dict[str, Floats]
    error: dict[str, Floats]
    worst: dict[str, float]
    settings: dict[str, dict[str, float]]
    oracle: Floats
    lower_bound: Floats

    def curves(self) -> dict[str, Floats]:
        """Return every curve of the picture by its name."""
        return {**self.rho, "Gaussian that knows the size": self.oracle, "lower bound": self.lower_bound}


def compare(wish: GroupsTarget, sizes: Integers) -> GroupsComparison:
    """Set every mechanism to the target and return what it pays and how far off it is."""
    from farthing.limits import group_lower_bound

    chosen = {name: _chosen(name, wish) for name in wish.mechanisms}
    spread = wish.rms * wish.wanted(sizes)
    return GroupsComparison(
        sizes,
        wish.wanted(sizes),
        {name: np.asarray(m.policy(sizes)) for name, m in chosen.items()},
        {name: np.asarray(m.expected_error(sizes, metric=wish.metric)) for name, m in chosen.items()},
        {name: float(np.asarray(m.policy(np.zeros(1, np.int64)))[0]) for name, m in chosen.items()},
        {name: asdict(m) for name, m in chosen.items()},
        1 / (2 * spread**2),
        np.asarray(group_lower_bound(spread / wish.relative, relative=wish.relative)),  # a spread of relative * x
    )


def _chosen(name: str, wish: GroupsTarget) -> Any:
    """Return the mechanism of a name, set to the target."""
    from farthing import mechanisms

    kinds: dict[str, Any] = {
        "gaussian": mechanisms.PlainGaussian,
        "two-stage": mechanisms.TwoStage,
        "sqrt": mechanisms.Power,
        "log": mechanisms.Log,
        "linear-log": mechanisms.LinearLog,
        "asinh": mechanisms.Asinh,
    }
    return kinds[name].for_relative_error(wish.relative, x0=wish.x0, metric=wish.metric)


def groups(ask: GroupsOptions, *, as_json: bool, chart: str | None) -> None:
    """Compare the mechanisms; print a table or JSON, and draw when asked."""
    path = chart_path(chart)
    names = _names(ask.mechanism or MECHANISMS)
    wish = GroupsTarget(typed.fraction("--relative", ask.relative), _floor(ask.x0), _metric(ask.metric), names)
    found = compare(wish, _sizes(ask.sizes, ask.csv))
    if path is not None:
        _draw(wish, found, path)
    if as_json:
        show.echo_json(plain(wish, found))
    else:
        _show(wish, found)


def plain(wish: GroupsTarget, found: GroupsComparison) -> dict[str, Any]:
    """Return a comparison as plain values: the target, each mechanism, and one row per size."""
    return {
        "relative": wish.relative,
        "x0": wish.x0,
        "metric": wish.metric if isinstance(wish.metric, str) else list(wish.metric),
        "mechanisms": [
            {"name": name, "settings": found.settings[name], "worst_rho": found.worst[name]} for name in found.rho
        ],
        "groups": [
            {
                "size": int(size),
                "target_error": float(found.target[i]),
                "rho": {name: float(rho[i]) for name, rho in found.rho.items()},
                "expected_error": {name: float(error[i]) for name, error in found.error.items()},
                "oracle_rho": float(found.oracle[i]),
                "lower_bound_rho": float(found.lower_bound[i]),
            }
            for i, size in enumerate(found.sizes)
        ],
    }


def _show(wish: GroupsTarget, found: GroupsComparison) -> None:
    """Print the losses, then what each mechanism is and how close it comes to the target."""
    out = show.console()
    out.print(f"rho (zCDP) of a member of a group, each mechanism at {_target_words(wish)}")
    heads = [(head, True) for head in ("size", *found.rho, "knows the size", "lower bound")]
    columns = [*found.rho.values(), found.oracle, found.lower_bound]
    rows = [[f"{size:,}", *(f"{column[i]:.3g}" for column in columns)] for i, size in enumerate(found.sizes.tolist())]
    out.print(show.columns_table(heads, rows))
    out.print("lower bound: of unbiased mechanisms with the root mean square error of the Gaussian that knows the size")
    told = [("mechanism", False), ("settings", False), ("largest error / target", True), ("rho at its worst", True)]
    lines = [
        [name, _settings(found.settings[name]), f"{(found.error[name] / found.target).max():.4f}",
         f"{found.worst[name]:.4g}"] for name in found.rho
    ]  # fmt: skip
    out.print(show.columns_table(told, lines))


def _draw(wish: GroupsTarget, found: GroupsComparison, path: Path) -> None:
    """Draw the curves between the least and the largest size."""
    from farthing import charts

    least, most = int(found.sizes.min()), int(found.sizes.max())
    spaced = np.geomspace(least, max(most, 2 * least), _DRAWN)
    between = np.unique(np.concatenate([found.sizes, spaced.astype(np.int64)]))
    drawn = compare(wish, between)
    charts.save(charts.policy_chart(drawn.sizes, drawn.curves(), title=_target_words(wish)), path)


def _target_words(wish: GroupsTarget) -> str:
    """Return the target in words."""
    kind = {"mae": "mean absolute error", "rmse": "root mean square error"}.get(str(wish.metric), "")
    kind = kind or f"{wish.metric[1]:.6g} confidence half-width"
    floor = f"max(size, {wish.x0:g})" if wish.x0 > 1 else "the size"
    return f"a {kind} of {wish.relative:g} of {floor}"


def _settings(values: dict[str, float]) -> str:
    """Return the parameters of a mechanism in words."""
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if name != "sensitivity")


def _names(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the names of mechanisms, each once; refuse what is none."""
    names = [name.strip() for each in wanted for name in each.split(",")]
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown:
        raise InvalidOption(
            "--mechanism is unknown",
            rule=" or ".join(MECHANISMS),
            got=unknown[0],
            next_step="leave it out to compare all of them",
        )
    return tuple(dict.fromkeys(names))


def _metric(text: str) -> Metric:
    """Return a metric that is written mae, rmse or 95%."""
    match text.strip():
        case "mae":
            return "mae"
        case "rmse":
            return "rmse"
        case confidence:
            return ("ci", typed.fraction("--metric", confidence))


def _floor(text: str) -> float:
    """Return x0 as a number; whether it is a size is the mechanisms' to say."""
    return _number("--x0", text, lambda what: InvalidTarget(what, **_how("--x0 50", text, "a number of records")))


def _sizes(text: str | None, source: str | None) -> Integers:
    """Return the sizes of groups, from the option or from a file."""
    if (text is None) == (source is None):
        raise InvalidOption(
            "no sizes" if text is None else "--sizes and --csv were both given",
            rule="sizes as a list, or from a file",
            next_step="--sizes 1,10,100,1000",
        )
    words = (text or "").split(",") if source is None else _column(source)
    sizes = [_size(word) for word in words]
    if not sizes:
        raise InvalidOption("no sizes", rule="one size at least", got=source, next_step="--sizes 1,10,100,1000")
    return np.array(sizes, np.int64)


def _size(word: str) -> int:
    """Return one size; refuse 0, where no relative error is possible."""
    value = _number("a group size", word, lambda what: InvalidTarget(what, **_how("--sizes 1,10,100", word, "a count")))
    if value == 0:
        raise InvalidTarget(
            "a group of 0 has no relative error",
            rule="a part of 0 is 0: only the exact answer is that close, at an infinite loss",
            got=word.strip(),
            next_step="start at 1: an empty group is protected as a group of 1 is",
        )
    if not 1 <= value <= _LARGEST or value != int(value):
        raise InvalidTarget(
            "a group size is not a whole number in range", **_how("--sizes 1,10,100", word, "1 <= size <= 2^52")
        )
    return int(value)


def _number(what: str, text: str, refusal: Callable[[str], InvalidTarget]) -> float:
    """Return a finite number as it was written."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise refusal(f"{what} is not a number")
    return float(value)


def _how(example: str, got: str, rule: str) -> dict[str, str]:
    """Return the facts of a refusal."""
    return {"rule": rule, "got": got.strip() or "nothing", "next_step": f"write it as in {example}"}


def _column(source: str) -> list[str]:
    """Return the texts of one column of a CSV file, written FILE:COLUMN, or FILE if it has one column."""
    path, _, name = source.rpartition(":") if ":" in source else (source, "", "")
    file = Path(path)
    if not file.is_file():
        raise DataError(
            "the file of sizes does not exist", rule="FILE or FILE:COLUMN", got=path, next_step="check the path"
        )
    with suppress(OSError, UnicodeDecodeError, csv.Error), file.open(encoding="utf-8-sig", newline="") as lines:
        table = csv.DictReader(lines)
        heads = list(table.fieldnames or ())
        wanted = name or (heads[0] if len(heads) == 1 else "")
        if wanted not in heads:
            raise InvalidOption(
                "the file does not have this column of sizes" if name else "which column holds the sizes?",
                rule="FILE:COLUMN names a column of the file",
                got=source,
                next_step=f"--csv {path}:{heads[0] if heads else 'size'}",
            )
        return [row[wanted] or "" for row in table]
    raise DataError(
        "the file of sizes cannot be read as CSV", rule="CSV with a header", got=path, next_step="check the file"
    )
