"""What an analyst wants of one question, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from farthing.accuracy.target import Target
from farthing.errors import InvalidTarget
from farthing.privacy.loss import Booked, Loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.session.refine import Progress

ON_MISS: Final = ("return", "drop", "raise")
_TARGET: Final = ("relative", "absolute", "confidence", "simultaneous")


@dataclass(frozen=True, slots=True)
class Request:
    """A target or a loss, and the terms of the ask.

    Attributes:
        target: the accuracy asked for; with a named loss only its confidence and simultaneity count.
        loss: the loss named instead, or None.
        max_epsilon: the most epsilon this question may cost, or None.
        cap: the most this question may cost: a loss, "all", or None for a tenth of the budget.
        on_miss: "return", "drop" or "raise".
        progress: called after every look.
    """

    target: Target | None
    loss: Booked | None = None
    confidence: float = 0.95
    simultaneous: bool = False
    max_epsilon: float | None = None
    cap: Loss | str | None = None
    on_miss: str = "return"
    progress: Callable[[Progress], None] | None = None

    @classmethod
    def of(
        cls,
        *,
        relative: float | None = None,
        absolute: float | None = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
        loss: Booked | None = None,
        max_epsilon: float | None = None,
        cap: Loss | str | None = None,
        on_miss: str = "return",
        progress: Callable[[Progress], None] | None = None,
        **unknown: object,
    ) -> Request:
        """Return the request of a method call.

        Raises:
            InvalidTarget: no target and no loss, both, or an option out of range.
        """
        _refuse_unknown(unknown)
        _check_terms(loss, max_epsilon, cap, on_miss, progress)
        if loss is not None and (relative is not None or absolute is not None):
            raise InvalidTarget(
                "a target and a loss were both given",
                rule="name the accuracy or name the price, not both",
                next_step="drop loss=, or drop relative= and absolute=; max_epsilon= limits the price of a target",
            )
        named = {"relative": relative, "absolute": absolute}
        given = {name: value for name, value in named.items() if value is not None}
        if loss is None and not given:
            raise InvalidTarget(
                "no accuracy was asked for",
                rule="relative= or absolute= (or loss=)",
                got="neither",
                next_step="relative=0.1, absolute=100 means within 10 % or 100, whichever is larger",
            )
        # The target of a named loss checks confidence and simultaneity; its width is never used.
        checked = Target(**(given or {"absolute": 1.0}), confidence=confidence, simultaneous=simultaneous)
        return cls(
            target=None if loss is not None else checked,
            loss=loss,
            confidence=checked.confidence,
            simultaneous=checked.simultaneous,
            max_epsilon=max_epsilon,
            cap=cap,
            on_miss=on_miss,
            progress=progress,
        )

    def changed(self, **changes: Any) -> Request:
        """Return the request with some options replaced, for a refine: what is left out stays."""
        kept: dict[str, Any] = {name: getattr(self, name) for name in ("max_epsilon", "cap", "on_miss", "progress")}
        kept |= {"confidence": self.confidence, "simultaneous": self.simultaneous}
        if "loss" not in changes:
            names = {"relative", "absolute"}
            if self.target is not None:
                kept |= {name: getattr(self.target, name) or None for name in names}
            elif not names & changes.keys():
                kept["loss"] = self.loss
        if "max_epsilon" in changes:
            kept["cap"] = None
        if "cap" in changes:
            kept["max_epsilon"] = None
        return Request.of(**(kept | changes))

    def beta(self, groups: int) -> float:
        """Return the failure probability allowed to each group; refuse one that is not calibrated."""
        width = Target(absolute=1.0, confidence=self.confidence, simultaneous=self.simultaneous)
        return width.beta(groups)

    def without_progress(self) -> Request:
        """Return the request without its callback, so that an answer keeps nothing alive."""
        return replace(self, progress=None)


def _refuse_unknown(unknown: dict[str, object]) -> None:
    """Refuse options that do not exist, naming them."""
    if unknown:
        raise InvalidTarget(
            f"unknown option {', '.join(sorted(unknown))}",
            rule="relative, absolute, confidence, simultaneous, loss, max_epsilon, cap, on_miss, progress",
            next_step="check the spelling",
        )


def _check_terms(loss: object, max_epsilon: object, cap: object, on_miss: object, progress: object) -> None:
    """Refuse terms of the wrong kind."""
    if loss is not None and (not isinstance(loss, Booked) or not loss):
        raise InvalidTarget(
            "loss is no loss > 0",
            rule="loss=Gdp(mu), Zcdp(rho) or Pure(epsilon)",
            got=repr(loss),
            next_step="for example loss=farthing.Gdp(0.05)",
        )
    if cap is not None and cap != "all" and (not isinstance(cap, Booked) or not cap):
        raise InvalidTarget(
            "cap is no loss > 0",
            rule='cap="all", or Gdp(mu), Zcdp(rho), Pure(epsilon)',
            got=repr(cap),
            next_step="for example cap=farthing.Gdp(0.05)",
        )
    if cap is not None and max_epsilon is not None:
        raise InvalidTarget("cap and max_epsilon were both given", rule="one limit an ask", next_step="drop one")
    if on_miss not in ON_MISS:
        raise InvalidTarget(
            "unknown on_miss", rule=" or ".join(ON_MISS), got=repr(on_miss), next_step="choose one of them"
        )
    if progress is not None and not callable(progress):
        raise InvalidTarget(
            "progress is not a function",
            rule="progress=f, called as f(Progress)",
            got=repr(progress),
            next_step="pass a function of one argument, or leave it out",
        )
