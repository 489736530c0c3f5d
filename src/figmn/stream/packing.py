"""The state of a mixture as named arrays, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn import validation
from figmn._typing import AnyArray
from figmn.engines import choice
from figmn.settings import Settings
from figmn.stream.phases import MixtureWarmUp, Phase, Streaming
from figmn.stream.retained_sample import RetainedSample
from figmn.stream.row_buffer import RowBuffer
from figmn.stream.start import Growth

_OPTIONAL: Final = (
    "scale",
    "held_rows",
    "held_weights",
    "held_together",
    "growth_scale",
    "growth_most",
    "sample_rows",
    "sample_weights",
    "sample_ranks",
    "sample_passed",
    "sample_counts",
    "sample_shares",
    "sample_log_dets",
)


def pack(phase: Phase) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    if isinstance(phase, MixtureWarmUp):
        components = choice.no_components(phase.buffer.n_features, phase.settings.update)
        components.moments[1] = phase.center
        arrays = choice.pack(components)
        arrays["held_rows"], arrays["held_weights"] = phase.buffer.rows, phase.buffer.weights
        arrays["held_together"] = np.array([phase.at_least])
    else:
        arrays = choice.pack(phase.components)
        if phase.growth is not None:
            arrays["growth_scale"] = phase.growth.scale
            arrays["growth_most"] = np.array([phase.growth.most])
        if phase.sample is not None:
            arrays |= _pack_sample(phase.sample)
    if phase.scale is not None:
        arrays["scale"] = phase.scale
    return arrays


def _pack_sample(sample: RetainedSample) -> dict[str, AnyArray]:
    return {
        "sample_rows": sample.rows,
        "sample_weights": sample.weights,
        "sample_ranks": sample.ranks,
        "sample_shares": sample.shares,
        "sample_log_dets": sample.log_dets,
        "sample_passed": np.array([sample.passed]),
        "sample_counts": np.array([sample.seen, sample.review_at]),
    }


def unpack(settings: Settings, arrays: dict[str, AnyArray]) -> Phase:
    """Inverse of :func:`pack`.

    Raises
    ------
    ValueError
        On arrays that no learning could have produced, as in a forged file.
    """
    optional = {name: array for name, array in arrays.items() if name in _OPTIONAL}
    components = choice.unpack(
        {name: array for name, array in arrays.items() if name not in _OPTIONAL}
    )
    n_features = components.n_features
    growth = scale = None
    if "scale" in optional:
        scale = validation.as_scale(optional["scale"], n_features)
    if "held_rows" in optional and "held_weights" in optional:
        rows = validation.as_rows(optional["held_rows"], n_features)
        weights = validation.as_weights(optional["held_weights"], len(rows))
        at_least = _count(optional.get("held_together", np.zeros(1, dtype=np.int64)))
        if at_least > len(rows):
            raise ValueError("more rows are to be fitted together than there are")
        buffer, center = RowBuffer(rows, weights), components.moments[1]
        return MixtureWarmUp(settings, buffer, scale, center, at_least)
    if "growth_scale" in optional and "growth_most" in optional:
        growth_scale = validation.as_scale(optional["growth_scale"], n_features)
        growth = Growth(growth_scale, _count(optional["growth_most"]))
    sample = _unpack_sample(optional, n_features) if "sample_rows" in optional else None
    return Streaming(settings, components, scale, growth, sample)


def _unpack_sample(arrays: dict[str, AnyArray], n_features: int) -> RetainedSample:
    rows = validation.as_rows(arrays["sample_rows"], n_features)
    weights = validation.as_weights(arrays["sample_weights"], len(rows))
    seen, review_at = (_count(count) for count in np.split(arrays["sample_counts"], 2))
    ranks, passed, shares, log_dets = (
        arrays[f"sample_{name}"] for name in ("ranks", "passed", "shares", "log_dets")
    )
    sizes = (ranks.shape, passed.shape, shares.ndim, log_dets.shape)
    numbers = np.concatenate([ranks, passed, shares], dtype=np.float64)
    if (
        sizes != ((len(rows),), (1,), 1, shares.shape)
        or len(rows) == 0
        or not (len(rows) <= seen < review_at)
        or not np.all((numbers >= 0.0) & np.isfinite(numbers))
        or not np.all(np.isfinite(log_dets))
    ):
        raise ValueError("the sample of the stream is none that learning could have made")
    return RetainedSample(
        rows, weights, ranks, float(passed[0]), seen, review_at, shares, log_dets
    )


def _count(array: AnyArray) -> int:
    if array.shape != (1,) or array.dtype.kind != "i" or array[0] < 0:
        raise ValueError("a count must be one integer that is not negative")
    return int(array[0])
