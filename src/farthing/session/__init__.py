"""Sessions: where a question meets the data, the noise and the books."""

from farthing.session.facade import How, Session
from farthing.session.refine import Progress

__all__ = ["How", "Progress", "Session"]
