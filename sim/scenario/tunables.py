"""The tables of [machine] that set parameters of kernel parts: name -> class of parameters."""

from collections.abc import Mapping
from typing import Final

TUNABLES: Final[Mapping[str, type]] = {}
