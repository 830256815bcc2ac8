"""`farthing release`: many tables of counts at once, which agree with each other."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.release import ReleaseOptions


def release(*, wanted: ReleaseOptions, as_json: options.Json = False, config: options.ConfigPath = None) -> None:
    r"""Publish many tables of counts at once: all of them agree.

    All tables over two of the columns, or over as many as --marginals says, at
    the least price for the accuracy that is named. What two tables have in
    common is paid for once, and every total is the same in all of them. A row
    counts if its value is listed in every column. Prefix sums, ranges and
    conditions are released together with tables, or by themselves.

    Examples:
      farthing release --marginals 2 --columns zone,month,late \
          --keys zone=@zones.csv:id --keys month=1..12 --keys late=true,false \
          --relative 10% --absolute 100 --to tables
      farthing release --columns zone,month --rms 20 --dry-run
      farthing release --columns zone,month --loss mu=0.1 --up-to
      farthing release --prefixes minutes=0,10,30,60 --condition "fare > 2" --absolute 100
    """
    with explained(as_json=as_json):
        from farthing.cli.run.release import release

        release(wanted, config, as_json=as_json)
