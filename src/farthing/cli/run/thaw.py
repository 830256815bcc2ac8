"""What `farthing thaw` does: one analyst, or everybody, may be charged again."""

from __future__ import annotations

from farthing.cli.run.freeze import change, told


def thaw(name: str | None, config: str | None, *, as_json: bool) -> None:
    """Thaw an analyst, or everybody."""
    told(change(name, config, frozen=False), as_json=as_json)
