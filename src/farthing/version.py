"""The version of farthing, in the one place that every floor may read."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
