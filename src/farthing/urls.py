"""Addresses of servers: what is one, and what of it may be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRETS: Final = ("password", "sslpassword")
"""Settings of a server's driver that are passwords."""

_SHOWN: Final = ("schema", "host", "port", "sslmode", "target_session_attrs")
"""Settings that are known to hold no secret; others are not shown."""

_PARTS: Final = re.compile(
    r"(?:(?P<who>[^:/?#@]*)(?::[^/?#@]*)?@)?(?P<host>[^:/?#@]*(?::\d*)?(?:/[^:?#@]*)?)"
    r"(?P<settings>\?[^@]*)?(?P<table>#[^?#@]*)?"
)
"""An address behind its scheme, as far as it can be read in one way."""


def is_address(place: object) -> bool:
    """Return whether a table or a ledger is named by where its server is; no path has such a mark.

    >>> is_address("postgresql://me@host/city#trips"), is_address("data/trips.parquet")
    (True, False)
    """
    return isinstance(place, str) and "://" in place


def shown_address(address: str, settings: Mapping[str, object] | None = None) -> str:
    """Return an address without what could be a password, nor the settings after "?".

    Of one that could be read in two ways, because a password holds a mark of addresses, only the scheme is left.

    Args:
        address: the address.
        settings: settings that were taken from it already, of which those without secrets are shown.

    >>> shown_address("postgresql://me:secret@host/db?password=x#trips"), shown_address("spark://host:7077#trips")
    ('postgresql://me@host/db?...', 'spark://host:7077#trips')
    >>> shown_address("postgresql://me:se#cret@host/db#trips")
    'postgresql://...'
    >>> shown_address("postgresql://me:secret@host/db", {"password": "secret", "schema": "books"})
    'postgresql://me@host/db?schema=books'
    """
    scheme, _, rest = address.partition("://")
    parts = _PARTS.fullmatch(rest)
    if parts is None:
        return f"{scheme}://..."
    who = "" if parts["who"] is None else f"{parts['who']}@"
    end = parts["table"] or "" if parts["settings"] is None else "?..."
    told = urlencode({name: str(value) for name, value in (settings or {}).items() if name in _SHOWN}, quote_via=quote)
    return f"{scheme}://{who}{parts['host']}{end}" + (f"?{told}" if told else "")


def name_at(address: str) -> str:
    """Return the name of the table at an address: its last part.

    >>> name_at("postgresql://me@db.example.org/city#public.trips"), name_at("spark://local[2]#/data/trips.parquet")
    ('trips', 'trips')
    """
    table = unquote(address.rpartition("#")[2]).rstrip("/")
    return table.rpartition("/")[2].partition(".")[0] if "/" in table else table.rpartition(".")[2]


def path_at(address: str) -> str | None:
    """Return the path of a file or folder on this machine that an address names behind "#"; None where it names none.

    >>> path_at("spark://local[2]#/data/my%20trips"), path_at("spark://local[2]#file:///data/trips.parquet")
    ('/data/my trips', '/data/trips.parquet')
    >>> path_at("spark://h:7077#hdfs://h/trips"), path_at("postgresql://me@host/city#public.trips"), path_at("/data/#1")
    (None, None, None)
    """
    table = unquote(address.rpartition("#")[2])
    if not is_address(address) or "/" not in table:
        return None
    scheme, mark, path = table.partition(":/")
    if not mark:
        return table
    return f"/{path.lstrip('/')}" if scheme == "file" else None
