"""The state of a mixture as named arrays, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn import validation
from figmn._typing import AnyArray
from figmn.engines import choice
from figmn.settings import Settings
from figmn.stream.phases import FitWarmUp, Phase, Streaming, warming_up
from figmn.stream.retained_sample import RetainedSample
from figmn.stream.row_buffer import RowBuffer
from figmn.stream.start import Growth
from figmn.stream.streaming import Review

_OPTIONAL: Final = (
    "scale",
    "held_rows",
    "held_weights",
    "held_together",
    "held_scaled_at",
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


_REVIEW = "review/"  # before the names of what a review has begun with


def pack(phase: Phase) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    if not isinstance(phase, Streaming):
        components = choice.no_components(phase.buffer.n_features, phase.settings.update)
        components.moments[1] = phase.center
        arrays = choice.pack(components)
        arrays["held_rows"], arrays["held_weights"] = phase.buffer.rows, phase.buffer.weights
        if isinstance(phase, FitWarmUp):
            arrays["held_together"] = np.array([phase.together])
            arrays["held_scaled_at"] = np.array([phase.scaled_at])
    else:
        arrays = choice.pack(phase.components)
        if phase.growth is not None:
            arrays["growth_scale"] = phase.growth.scale
            arrays["growth_most"] = np.array([phase.growth.most])
        if phase.sample is not None:
            arrays |= _pack_sample(phase.sample)
        if phase.review is not None:
            arrays |= _pack_review(phase.review)
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


def _pack_review(review: Review) -> dict[str, AnyArray]:
    """What a review began with, and the rows since: the same work is done again from there."""
    later = review.later.split(review.arrived)[0]
    arrays = {
        **choice.pack(review.before),
        "sample_rows": review.sample.rows,
        "sample_weights": review.sample.weights,
        "later_rows": later.rows,
        "later_weights": later.weights,
    }
    return {_REVIEW + name: array for name, array in arrays.items()}


def unpack(settings: Settings, arrays: dict[str, AnyArray]) -> Phase:
    """Inverse of :func:`pack`.

    Raises
    ------
    ValueError
        On arrays that no learning could have produced, as in a forged file.
    """
    review = {name: array for name, array in arrays.items() if name.startswith(_REVIEW)}
    arrays = {name: array for name, array in arrays.items() if name not in review}
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
        together, scaled_at = (
            _count(optional.get(f"held_{name}", np.zeros(1, dtype=np.int64)))
            for name in ("together", "scaled_at")
        )
        if together > len(rows):
            raise ValueError("more rows are to be fitted together than there are")
        buffer, center = RowBuffer(rows, weights), components.moments[1]
        return warming_up(settings, buffer, scale, center, together, scaled_at)
    if "growth_scale" in optional and "growth_most" in optional:
        growth_scale = validation.as_scale(optional["growth_scale"], n_features)
        growth = Growth(growth_scale, _count(optional["growth_most"]))
    sample = _unpack_sample(optional, n_features) if "sample_rows" in optional else None
    streaming = Streaming(settings, components, scale, growth, sample)
    if review:
        streaming.review = _unpack_review(
            {name.removeprefix(_REVIEW): array for name, array in review.items()}, streaming
        )
    return streaming


def _unpack_review(arrays: dict[str, AnyArray], now: Streaming) -> Review:
    names = ("sample_rows", "sample_weights", "later_rows", "later_weights")
    sample_rows, sample_weights, later_rows, later_weights = (arrays[name] for name in names)
    before = choice.unpack({name: arrays[name] for name in arrays if name not in names})
    if before.n_features != now.n_features or len(sample_rows) == 0:
        raise ValueError("the review of the stream is none that learning could have begun")
    sample, later = (
        RowBuffer(
            validation.as_rows(rows, now.n_features), validation.as_weights(weights, len(rows))
        )
        for rows, weights in ((sample_rows, sample_weights), (later_rows, later_weights))
    )
    return Review(now.settings, now.scale, sample, before, later)


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
