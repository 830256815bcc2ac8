"""Requests to a server of farthing, and what comes back: answers, looks, and errors as a session raises them."""

from __future__ import annotations

import json
import math
import secrets
from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from farthing import errors
from farthing.errors import DataError, FarthingError
from farthing.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from farthing.privacy.loss import Booked

ARROW: Final = "application/vnd.apache.arrow.stream"
"""The media type of rows as an Arrow stream."""

_TRIES: Final = 3
"""How often a request is sent whose response does not come: by its idempotency key it is never charged twice."""


class RefusedRequest(FarthingError):  # noqa: N818  # as its siblings are named
    """What the server itself refuses: a stranger, a request that cannot be read, too many of them.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, what: str, *, status: int, **facts: Any) -> None:
        self.status = status
        super().__init__(what, **facts)


@dataclass(frozen=True, slots=True)
class Wire:
    """Requests to one server."""

    client: httpx.Client

    @classmethod
    def to(cls, url: str, token: str, timeout_s: float = 300.0) -> Self:
        """Return a way to a server."""
        return cls(httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=timeout_s))

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, accept: str = "application/json"
    ) -> httpx.Response:
        """Return what a request came to; the errors of the server are raised as they are in a session."""
        headers = {"Accept": accept, "Idempotency-Key": secrets.token_hex(16), "Farthing-Face": "Python"}
        came = None
        for _ in range(_TRIES):
            try:
                came = self.client.request(method, path, json=body, headers=headers)
                break
            except httpx.TransportError:
                came = None
        if came is None:
            raise DataError(
                "the server cannot be reached",
                rule="an address where `farthing serve` answers",
                got=f"{self.client.base_url}",
                next_step="ask again: what was answered is not charged twice",
            )
        if not came.is_success:
            raise _error(came)
        return came

    def watched(self, path: str, body: Mapping[str, Any], progress: Callable[[Progress], None]) -> bytes | None:
        """Return the answer to a question as an Arrow stream, and tell on the way how far it is.

        None where the connection breaks or the server tells no looks: what was answered is not charged twice.
        """
        headers = {"Accept": f"text/event-stream, {ARROW}", "Farthing-Face": "Python"}
        failed = None
        with suppress(httpx.TransportError), self.client.stream("POST", path, json=body, headers=headers) as came:
            if not came.is_success:
                came.read()
                raise _error(came)
            for name, value in _events(came.iter_lines()):
                if name == "look":
                    progress(_seen(value))
                elif name == "answer":
                    return b64decode(value["content"]) if value.get("type") == ARROW else None
                else:
                    failed = _told(value, 500)
        if failed is not None:
            raise failed
        return None


def _events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the events of a stream: the name and the plain values of each."""
    name = ""
    for line in lines:
        head, _, rest = line.partition(": ")
        if head == "event":
            name = rest
        elif head == "data":
            yield name, json.loads(rest)


def _seen(facts: Mapping[str, Any]) -> Progress:
    """Return where a refinement stands, from its plain values."""
    width, paid = facts["half_width"], facts["paid"]
    known = {"half_width": math.inf if width is None else width, "paid": None if paid is None else loss_of(paid)}
    return Progress(**{**facts, **known})


def _error(came: httpx.Response) -> FarthingError:
    """Return the error that a response tells."""
    told: Mapping[str, Any] = {}
    try:
        told = came.json()
    except ValueError:
        told = {}
    return _told(told, came.status_code)


def _told(told: Any, status: int) -> FarthingError:
    """Return the error that plain values tell."""
    facts: Any = told.get("error") if isinstance(told, dict) else None
    facts = facts if isinstance(facts, dict) else {}
    what = str(facts.get("message", "the address is not a server of farthing"))
    more = {name: str(facts.get(key, "")) for name, key in (("rule", "rule"), ("got", "got"), ("next_step", "next"))}
    kind = getattr(errors, str(facts.get("kind", "")), None)
    if kind is errors.TargetMissed:
        return errors.TargetMissed(what, answer=told, **more)
    if isinstance(kind, type) and issubclass(kind, FarthingError):
        made: FarthingError = kind(what, **more)
        return made
    return RefusedRequest(what, status=status, **more)


def loss_of(facts: Mapping[str, float]) -> Booked:
    """Return a loss from its plain values."""
    from farthing.privacy.loss import Gdp, Pure, Zcdp

    name = next(iter(facts))
    kinds: dict[str, Any] = {"mu": Gdp, "rho": Zcdp, "epsilon": Pure}
    made: Booked = kinds[name](facts[name])
    return made
