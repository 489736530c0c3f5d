"""The state of a mixture as named arrays, and back."""

from __future__ import annotations

from figmn._typing import AnyArray, Array
from figmn.components import engine
from figmn.components.base import Components
from figmn.mixture import validation
from figmn.mixture.warmup import HeldRows


def pack(
    components: Components, scale: Array | None, held: HeldRows | None
) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    arrays = components.arrays()
    if scale is not None:
        arrays["scale"] = scale
    if held is not None:
        arrays["held_rows"], arrays["held_weights"] = held.rows, held.weights
    return arrays


def unpack(arrays: dict[str, AnyArray]) -> tuple[Components, Array | None, HeldRows | None]:
    """Inverse of :func:`pack`.

    Raises
    ------
    ValueError
        On arrays that no learning could have produced, as in a forged file.
    """
    optional = ("scale", "held_rows", "held_weights")
    scale, rows, weights = (arrays.get(name) for name in optional)
    components = engine.from_arrays(
        {name: array for name, array in arrays.items() if name not in optional}
    )
    if rows is None or weights is None:
        return components, scale, None
    rows = validation.as_rows(rows, components.n_features)
    return components, scale, HeldRows(rows, validation.as_weights(weights, len(rows)))
