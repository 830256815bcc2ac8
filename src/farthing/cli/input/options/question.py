"""What the options of a question say, as they were typed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from farthing.cli.input import options, typed
from farthing.errors import InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.session import How
    from farthing.sql import Asked

PRIVATE: Final = "private"
"""`--keys private`: the groups that exist are found privately."""


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """The options of a question, None where they say nothing; each field is an option of `ask` and `plan`."""

    relative: options.Relative = None
    absolute: options.Absolute = None
    rank: options.Rank = None
    confidence: options.Confidence = None
    simultaneous: options.Simultaneous = False
    together: options.Together = False
    share: options.Share = None
    nonnegative: options.Nonnegative = False
    on_miss: options.OnMiss = None
    mechanism: options.Mechanism = None
    loss: options.NamedLoss = None
    max_epsilon: options.MaxEpsilon = None
    cap: options.Cap = None
    keys: options.Keys = None
    found_above: options.FoundAbove = None
    max_groups: options.MaxGroups = None
    max_rows: options.MaxRows = None
    lower: options.Lower = None
    upper: options.Upper = None
    bounds: options.AutoBounds = None

    @classmethod
    def of(cls, given: Any) -> QuestionOptions:
        """Return those options of another command that questions have too."""
        shared = {each.name for each in fields(cls)} & {each.name for each in fields(given)}
        return cls(**{name: getattr(given, name) for name in shared})

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

    def how(self, asked: Asked, *, default: bool = False, left: bool = False) -> How:
        """Return the target and the price of a question, over what its text says of them.

        Args:
            asked: what the text says.
            default: whether the settings have a target for questions that name none.
            left: whether it is known already that it names none.
        """
        from farthing.query.aggregates import Quantile

        names = [output.name for output in asked.outputs]
        ranked = [output.name for output in asked.outputs if isinstance(output.aggregate, Quantile)]
        if not left:
            self._refuse_nothing(asked, ranked, default=default)
        found = {
            "relative": typed.widths("--relative", self.relative, names),
            "absolute": typed.widths("--absolute", self.absolute, names),
            "rank": typed.widths("--rank", self.rank, ranked),
            "confidence": self._read(typed.fraction, "--confidence", self.confidence),
            "share": self._read(typed.fraction, "--share", self.share),
            "loss": self._read(typed.loss, "--loss", self.loss),
            "max_epsilon": self._read(typed.amount, "--max-epsilon", self.max_epsilon),
            "cap": None if self.cap is None else typed.cap(self.cap),
            "on_miss": None if self.on_miss is None else typed.on_miss(self.on_miss),
            "found_above": self.found_above,
            "mechanism": self.mechanism,
        }
        given: Any = {name: value for name, value in found.items() if value is not None}
        flags = {name: True for name in ("simultaneous", "together", "nonnegative") if getattr(self, name)}
        how: How = given | flags
        return how

    def _refuse_nothing(self, asked: Asked, ranked: Sequence[str], *, default: bool) -> None:
        """Refuse a question without accuracy and price, and a rank error of what has no rank."""
        text = asked.options
        if (
            not default
            and not any((self.relative, self.absolute, self.rank, self.loss, text.epsilon))
            and (text.relative is None and text.absolute is None)
        ):
            raise InvalidTarget(
                "no accuracy was asked for",
                rule="--relative, --absolute or both (or --loss, to name the price instead)",
                next_step="--relative 5% --absolute 50 means within 5 % or 50, whichever is larger",
                missing="target",
            )
        if self.rank and not ranked:
            raise InvalidTarget(
                "--rank without a quantile",
                rule="a rank error belongs to MEDIAN, MIN, MAX, QUANTILE or PERCENTILE_CONT",
                got=", ".join(str(output.aggregate) for output in asked.outputs),
                next_step="use --relative or --absolute",
            )

    @staticmethod
    def _read(reader: Callable[[str, str], Any], option: str, text: str | None) -> Any:
        """Return what an option says, None where it was not given."""
        return None if text is None else reader(option, text)
