"""A simulated Diffix, as its public description has it: three versions, each of which refuses the last attack."""

from farthing.attacks.diffix.noise import StickyNoise
from farthing.attacks.diffix.restrictions import RESTRICTIONS, Version
from farthing.attacks.diffix.system import CALIBRATED, Diffix

__all__ = ["CALIBRATED", "RESTRICTIONS", "Diffix", "StickyNoise", "Version"]
