"""A question of a workload that is read and not asked yet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.session.answering.bounds import bounded
from farthing.session.questions.pipeline import answered, planned

if TYPE_CHECKING:
    from farthing.planning import Plan
    from farthing.query import AutoBounds, Bounds
    from farthing.release import Answer
    from farthing.session.answering.bounds import Read
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request


@dataclass(frozen=True, slots=True)
class Draft:
    """A question of a workload, read and not asked yet.

    Attributes:
        context: the data and the books.
        read: how it is read under given bounds.
        given: its bounds.
        request: its target and price.
        name: what it is called in the workload.
    """

    context: Context
    read: Read
    given: Bounds | AutoBounds
    request: Request
    name: str = ""

    @property
    def plan(self) -> Plan:
        """Its plan, given what was released by now."""
        return planned(self.context, self.read, self.given, self.request)

    def ask(self) -> Answer:
        """Ask it."""
        return answered(self.context, self.read, self.given, self.request)

    def refused(self, plan: Plan) -> bool:
        """Return whether it is not asked under this plan, since no group can meet its target."""
        return plan.hopeless and not self.request.spend

    @property
    def identity(self) -> str:
        """What tells it from other questions: equal texts are answered by the same measurements, shown alike."""
        question, _ = bounded(self.context, self.read, self.given, self.request, free=True)
        query = question.query.arranged()
        asked = question.asked
        shown = None if asked is None or asked.shows_answer else repr(asked.aftermath)
        outputs = [output.aggregate.canonical() for output in question.outputs]
        return json.dumps([query.canonical(), outputs, self.request.mechanism, shown])
