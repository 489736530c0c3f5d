"""The state of a mixture as named arrays, and back."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.components import engine
from figmn.components.base import Components
from figmn.mixture import validation
from figmn.mixture.start import Growth
from figmn.mixture.warmup import HeldRows

_OPTIONAL: Final = (
    "scale",
    "held_rows",
    "held_weights",
    "held_together",
    "growth_scale",
    "growth_most",
)


class Packed(NamedTuple):
    """What a file of a mixture holds, beside its settings."""

    components: Components
    scale: Array | None
    held: HeldRows | None
    growth: Growth | None


def pack(packed: Packed) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    components, scale, held, growth = packed
    arrays = components.arrays()
    if scale is not None:
        arrays["scale"] = scale
    if held is not None:
        arrays["held_rows"], arrays["held_weights"] = held.rows, held.weights
        arrays["held_together"] = np.array([held.together])
    if growth is not None:
        arrays["growth_scale"], arrays["growth_most"] = growth.scale, np.array([growth.most])
    return arrays


def unpack(arrays: dict[str, AnyArray]) -> Packed:
    """Inverse of :func:`pack`.

    Raises
    ------
    ValueError
        On arrays that no learning could have produced, as in a forged file.
    """
    optional = {name: array for name, array in arrays.items() if name in _OPTIONAL}
    components = engine.from_arrays(
        {name: array for name, array in arrays.items() if name not in _OPTIONAL}
    )
    n_features = components.n_features
    held = growth = None
    if "held_rows" in optional and "held_weights" in optional:
        rows = validation.as_rows(optional["held_rows"], n_features)
        weights = validation.as_weights(optional["held_weights"], len(rows))
        together = _count(optional.get("held_together", np.zeros(1, dtype=np.int64)))
        if together > len(rows):
            raise ValueError("more rows are to be fitted together than there are")
        held = HeldRows(rows, weights, together)
    if "growth_scale" in optional and "growth_most" in optional:
        growth_scale = validation.as_scale(optional["growth_scale"], n_features)
        growth = Growth(growth_scale, _count(optional["growth_most"]))
    return Packed(components, optional.get("scale"), held, growth)


def _count(array: AnyArray) -> int:
    if array.shape != (1,) or array.dtype.kind != "i" or array[0] < 0:
        raise ValueError("a count must be one integer that is not negative")
    return int(array[0])
