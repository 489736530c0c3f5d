"""The one place that decides how components are held."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import AnyArray
from figmn.components import state as states
from figmn.components.base import Components
from figmn.components.lazy import LazyComponents
from figmn.components.plain import PlainComponents

LEAST_LAZY_FEATURES: Final = 256
"""From this many variables on, blocks of rows are faster than the plain loop."""


def none(n_features: int, update: str) -> Components:
    """Components of a mixture that has learnt nothing."""
    if _is_lazy(n_features, update):
        return LazyComponents(n_features)
    return PlainComponents(states.empty(n_features, 1))


def suited(components: Components, update: str) -> Components:
    """The same components, held as suits their number of variables and the update rule."""
    lazy = _is_lazy(components.n_features, update)
    if lazy == isinstance(components, LazyComponents):
        return components
    state = states.selected(components, np.arange(components.n_components))
    if not lazy:
        return PlainComponents(state)
    held = LazyComponents(components.n_features)
    held.assume(state)
    return held


def _is_lazy(n_features: int, update: str) -> bool:
    # The rule printed in the paper takes away from a covariance at first, which
    # rows that join it cannot express.
    return n_features >= LEAST_LAZY_FEATURES and update == "exact"


def from_arrays(arrays: dict[str, AnyArray]) -> Components:
    """Components from what ``Components.arrays`` gave; raises ValueError on anything else."""
    kind = LazyComponents if "pending" in arrays else PlainComponents
    return kind.from_arrays(arrays)
