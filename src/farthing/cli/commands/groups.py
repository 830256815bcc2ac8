"""`farthing groups`: what members of small and large groups pay, by mechanism."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.groups import GroupsOptions


def groups(*, asked: GroupsOptions, as_json: options.BareJson = False, chart: options.BareChart = None) -> None:
    """Show what a member of a group pays, by the size of the group.

    Every mechanism is set to the same relative error. The table says what each
    costs a member of a group of each size, in zCDP, next to a Gaussian that knows
    the size, and the least that an unbiased mechanism can cost. Spends nothing.

    Examples:
      farthing groups --sizes 1,10,100,1000 --relative 0.1
      farthing groups --csv zones.csv:riders --relative 5% --x0 50
    """
    with explained(as_json=as_json):
        from farthing.cli.run.groups import groups

        groups(asked, as_json=as_json, chart=chart)
