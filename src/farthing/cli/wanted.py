"""What the options of `ask` and `plan` say, as they were typed; and how a command takes them all."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from farthing.cli import flags, options
from farthing.errors import InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.session import How
    from farthing.sql import Asked

PRIVATE: Final = "private"
"""`--keys private`: the groups that exist are found privately."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a question, None where they say nothing; each field is an option of `ask` and `plan`."""

    relative: flags.Relative = None
    absolute: flags.Absolute = None
    rank: flags.Rank = None
    confidence: flags.Confidence = None
    simultaneous: flags.Simultaneous = False
    together: flags.Together = False
    share: flags.Share = None
    nonnegative: flags.Nonnegative = False
    on_miss: flags.OnMiss = None
    mechanism: flags.Mechanism = None
    loss: flags.NamedLoss = None
    max_epsilon: flags.MaxEpsilon = None
    cap: flags.Cap = None
    keys: flags.Keys = None
    found_above: flags.FoundAbove = None
    max_groups: flags.MaxGroups = None
    max_rows: flags.MaxRows = None
    lower: flags.Lower = None
    upper: flags.Upper = None
    bounds: flags.AutoBounds = None

    @property
    def private(self) -> bool:
        """Whether the groups are to be found privately."""
        if PRIVATE not in (self.keys or ()):
            if self.found_above is not None:
                raise InvalidOption(
                    "--found-above without --keys private",
                    rule="it says from which size groups are found",
                    next_step="add --keys private, or drop it",
                )
            return False
        if self.keys != [PRIVATE]:
            raise InvalidOption(
                "--keys private and other keys were both given",
                rule="the groups are found, or they are listed",
                next_step="drop --keys private, or the others",
            )
        return True

    def how(self, asked: Asked) -> How:
        """Return the target and the price of a question, over what its text says of them."""
        from farthing.query.aggregates import Quantile

        names = [output.name for output in asked.outputs]
        ranked = [output.name for output in asked.outputs if isinstance(output.aggregate, Quantile)]
        self._refuse_nothing(asked, ranked)
        found = {
            "relative": options.widths("--relative", self.relative, names),
            "absolute": options.widths("--absolute", self.absolute, names),
            "rank": options.widths("--rank", self.rank, ranked),
            "confidence": self._read(options.fraction, "--confidence", self.confidence),
            "share": self._read(options.fraction, "--share", self.share),
            "loss": self._read(options.loss, "--loss", self.loss),
            "max_epsilon": self._read(options.amount, "--max-epsilon", self.max_epsilon),
            "cap": None if self.cap is None else options.cap(self.cap),
            "on_miss": None if self.on_miss is None else options.on_miss(self.on_miss),
            "found_above": self.found_above,
            "mechanism": self.mechanism,
        }
        given: Any = {name: value for name, value in found.items() if value is not None}
        how: How = given | {
            "simultaneous": self.simultaneous,
            "together": self.together,
            "nonnegative": self.nonnegative,
        }
        return how

    def _refuse_nothing(self, asked: Asked, ranked: Sequence[str]) -> None:
        """Refuse a question without accuracy and price, and a rank error of what has no rank."""
        text = asked.options
        if not any((self.relative, self.absolute, self.rank, self.loss, text.epsilon)) and (
            text.relative is None and text.absolute is None
        ):
            raise InvalidTarget(
                "no accuracy was asked for",
                rule="--relative, --absolute or both (or --loss, to name the price instead)",
                next_step="--relative 5% --absolute 50 means within 5 % or 50, whichever is larger",
            )
        if self.rank and not ranked:
            raise InvalidTarget(
                "--rank without a quantile",
                rule="a rank error is of MEDIAN, MIN, MAX, QUANTILE or PERCENTILE_CONT",
                got=", ".join(str(output.aggregate) for output in asked.outputs),
                next_step="use --relative or --absolute",
            )

    @staticmethod
    def _read(reader: Callable[[str, str], Any], option: str, text: str | None) -> Any:
        """Return what an option says, None where it was not given."""
        return None if text is None else reader(option, text)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every field of `Wanted` as an option, in place of its parameter `wanted`.

    >>> def ask(sql: str, *, wanted: Wanted, as_json: bool = False) -> None: ...
    >>> list(inspect.signature(with_options(ask)).parameters)[:3]
    ['sql', 'relative', 'absolute']
    """
    signature = inspect.signature(command, eval_str=True)
    hints, kind = get_type_hints(Wanted, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    each = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in fields(Wanted)
    ]
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += each if parameter.annotation is Wanted else [parameter]

    @functools.wraps(command)
    def taken(**given: Any) -> None:
        wanted = Wanted(**{field.name: given.pop(field.name) for field in fields(Wanted)})
        command(**given, wanted=wanted)

    taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    taken.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return taken
