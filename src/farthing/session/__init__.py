"""Sessions: where a question meets the data, the noise and the books."""

from farthing.progress import Progress
from farthing.session.facade import Session
from farthing.session.guarantee import Guarantee
from farthing.session.partition import Part, Partition
from farthing.session.questions.methods import How, Where

__all__ = ["Guarantee", "How", "Part", "Partition", "Progress", "Session", "Where"]
