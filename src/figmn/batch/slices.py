"""Long work in slices, so that whoever has it done can do something else in between.

Such work is a generator: it yields after each slice what that has cost, in microseconds of
a common machine, and returns its result. The cost is an estimate from the sizes of arrays,
never a measurement: what a stream learns must not depend on how fast a machine is.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

Result = TypeVar("Result")
Slices: TypeAlias = Generator[float, None, Result]

_CALLS: Final = 45.0  # of a slice, whatever its size: some tens of calls of NumPy
_PRODUCTS: Final = 5e3  # multiplications and additions in a microsecond
LARGEST: Final = 1e7
"""Multiplications and additions that a slice should not exceed by much."""


def cost(products: float) -> float:
    """What a slice of so many multiplications costs."""
    return _CALLS + products / _PRODUCTS


def finished(slices: Slices[Result]) -> Result:
    """Do all of the work at once."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            result: Result = stop.value
            return result
