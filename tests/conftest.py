"""Shared by all tests: the false-alarm budget is counted, and Hypothesis is repeatable in the gate."""

from __future__ import annotations

import os
from functools import cache

import pytest
import typer.testing
from hypothesis import settings
from levels import TESTS

typer.testing._get_command = cache(typer.testing._get_command)  # the tree of commands is built once a process

settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse to run more statistical tests than the false-alarm budget was split over."""
    counted = sum(item.get_closest_marker("statistical") is not None for item in items)
    if counted > TESTS:
        raise pytest.UsageError(
            f"{counted} statistical tests share a budget for {TESTS}: raise TESTS in tests/levels.py"
        )
