"""What an attack accepts: a Target, or a plain function of a 0/1 vector together with the secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.attacks.target import AttackTarget, Claim
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray


def accepted(
    target: AttackTarget | Callable[[NDArray[np.bool_]], Any], bits: Any = None, claim: Claim | None = None
) -> AttackTarget:
    """Return what is attacked as a Target."""
    from farthing.attacks.targets.adapters import Function

    if isinstance(target, AttackTarget):
        if bits is not None or claim is not None:
            raise DataError(
                "a target has its own secrets and claim",
                rule="bits= and claim= go with a plain function",
                got=type(target).__name__,
                next_step="leave them out, or give them to the target",
            )
        return target
    if not callable(target) or bits is None:
        raise DataError(
            "this cannot be attacked",
            rule="a Target, or a function of a 0/1 vector with bits=",
            got=type(target).__name__,
            next_step="attacks.linear(answer, bits=bits), or attacks.targets.Endpoint(url, people)",
        )
    return Function(target, bits, claim=claim)


def several(
    targets: AttackTarget | Iterable[AttackTarget] | Callable[[NDArray[np.bool_]], Any],
    bits: Any = None,
    claim: Claim | None = None,
) -> list[AttackTarget]:
    """Return one target as a list of one, and several as they are."""
    if isinstance(targets, AttackTarget) or callable(targets):
        return [accepted(targets, bits, claim)]
    found = [accepted(target) for target in targets]
    if not found:
        raise DataError("no target", rule="at least one", got="none", next_step="give a target, or a list of them")
    return found
