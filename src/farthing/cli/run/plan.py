"""What `farthing plan` does: prices a question, and shows the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.cli import show
from farthing.cli.failing import in_flags
from farthing.cli.input import config as settings
from farthing.cli.input.question import question
from farthing.cli.input.session import opened
from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from farthing.cli.input.options.question import QuestionOptions
    from farthing.planning import Plan
    from farthing.planning.release import ReleasePlan


def plan(sql: str, wanted: QuestionOptions, config: str | None, *, allotment: str | None, as_json: bool) -> None:
    """Price a question and show the plan."""
    refuse_paid_plan(wanted)
    chosen = settings.read(config)
    with opened(chosen, allotment=allotment) as session:
        made = question(sql, wanted, chosen, session)
        tell_plan(session.plan(sql, **made.where, **made.how), as_json=as_json)


def refuse_paid_plan(wanted: QuestionOptions) -> None:
    """Refuse to choose bounds for a plan: that is paid for, and plans are free."""
    if wanted.bounds is not None:
        raise InvalidOption(
            "--bounds auto with a plan",
            rule="a plan is free, and choosing bounds is paid for",
            got=f"--bounds {wanted.bounds}",
            next_step="name the bounds, as in --max-groups 5 --max-rows 20; `farthing bounds` shows what they cut",
        )


def tell_plan(made: Plan | ReleasePlan, *, as_json: bool) -> None:
    """Print a plan."""
    if as_json:
        facts = made.to_dict()
        show.echo_json(facts | {"advice": in_flags(facts["advice"])})
    else:
        told, note, advice = str(made).rpartition("\nnote: ")
        show.say(f"{told}{note}{in_flags(advice) if note else advice}")
