"""What a publication says beside its numbers: what its publisher tells of it, and what the books promise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Self

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Mapping

LATER: Final = "to be filled in"
"""What stands where the publisher said nothing and a registry asks."""


@dataclass(frozen=True, slots=True)
class Imprint:
    """What a publisher tells of a publication; "" where nothing was said.

    Attributes:
        title: its name.
        description: what it holds, in a sentence.
        purpose: what it is to be used for.
        curators: who publishes it.
        region: where the data are from, or whose law applies.
        sector: Government, Healthcare, Education, Technology, Energy or Finance.
        sources: links to further papers.

    >>> Imprint.of({"title": "Rides", "curators": ["City of X"]}).curators
    ('City of X',)
    """

    title: str = ""
    description: str = ""
    purpose: str = ""
    curators: tuple[str, ...] = ()
    region: str = ""
    sector: str = ""
    sources: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return what a table of settings says.

        Raises:
            InvalidOption: a setting that does not exist, or is not a text.
        """
        known = [each.name for each in fields(cls)]
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                near = get_close_matches(name, known, n=1)
                raise InvalidOption(
                    f"unknown setting {name!r} of [publication]",
                    rule=", ".join(known),
                    got=name,
                    next_step=f"did you mean {near[0]}?" if near else "remove it",
                )
            listed = value if isinstance(value, list) else [value]
            if not all(isinstance(each, str) for each in listed) or (name != "curators" and listed is value):
                raise InvalidOption(
                    f"{name!r} of [publication] has the wrong type",
                    rule="a text; curators may be a list of texts",
                    got=repr(value)[:80],
                    next_step=f'{name} = "..."',
                )
            found[name] = tuple(listed) if name == "curators" else value
        return cls(**found)

    @property
    def missing(self) -> tuple[str, ...]:
        """What a registry asks for and was not said."""
        asked = ("title", "description", "purpose", "curators", "region")
        return tuple(name for name in asked if not getattr(self, name))


@dataclass(frozen=True, slots=True)
class GroupPromise:
    """What everything released, together, promises to several units.

    Attributes:
        many: how many units.
        who: the same in words.
        epsilon, delta: the promise.
    """

    many: int
    who: str
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Standing:
    """What the books say of a publication, at one head of their chain.

    Attributes:
        version: the version of farthing.
        table: the protected table.
        data: the owner's name for this state of the data.
        unit: whose presence is hidden: "row" or the unit column.
        currency: "gdp", "zcdp" or "pure".
        budget, spent: losses as plain values: the parameter, epsilon, delta.
        promises: to one unit first, then to several.
        records, head: the end of the chain.
        day: when the books last changed, as YYYY-MM-DD.
    """

    version: str
    table: str
    data: str
    unit: str
    currency: str
    budget: Mapping[str, float]
    spent: Mapping[str, float]
    promises: tuple[GroupPromise, ...]
    records: int
    head: str
    day: str

    @property
    def whom(self) -> str:
        """Whose presence is hidden, in words."""
        return self.promises[0].who
