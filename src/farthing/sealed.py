"""Exact numbers in a box that shows nothing: no repr, attribute, closure or local variable leads to them.

Debuggers, error trackers and test runners print the local variables of every frame of a traceback, and a callback can
walk the frames above it. So exact numbers are held here, by a box without attributes, and opened only inside of the
function that adds noise to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import MutableMapping

T = TypeVar("T")


class Sealed:
    """A box; `opened` tells what is in it. It cannot be printed, pickled or copied.

    >>> box = sealed([73_913])
    >>> box, opened(box)
    (<exact numbers, sealed>, [73913])
    """

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        return "<exact numbers, sealed>"

    def __reduce__(self) -> NoReturn:
        message = "exact numbers are not written anywhere"
        raise TypeError(message)


_HELD: Final[MutableMapping[Sealed, Any]] = WeakKeyDictionary()


def sealed(exact: Any) -> Sealed:
    """Return a box with exact numbers; what is in a box already stays in it."""
    if isinstance(exact, Sealed):
        return exact
    box = Sealed()
    _HELD[box] = exact
    return box


def opened(box: Any) -> Any:
    """Return what is in a box."""
    return _HELD[box] if isinstance(box, Sealed) else box
