"""The state of a mixture as named arrays, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import AnyArray
from figmn.components import engine
from figmn.mixture import validation
from figmn.mixture.choices import Choices
from figmn.mixture.learner import Learner
from figmn.mixture.sample import Sample
from figmn.mixture.start import Growth
from figmn.mixture.warmup import HeldRows

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


def pack(learner: Learner) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    scale, held, growth, sample = learner.scale, learner.held, learner.growth, learner.sample
    arrays = learner.components.arrays()
    if scale is not None:
        arrays["scale"] = scale
    if held is not None:
        arrays["held_rows"], arrays["held_weights"] = held.rows, held.weights
        arrays["held_together"] = np.array([held.together])
    if growth is not None:
        arrays["growth_scale"], arrays["growth_most"] = growth.scale, np.array([growth.most])
    if sample is not None:
        arrays["sample_rows"], arrays["sample_weights"] = sample.rows, sample.weights
        arrays["sample_ranks"], arrays["sample_shares"] = sample.ranks, sample.shares
        arrays["sample_log_dets"] = sample.log_dets
        arrays["sample_passed"] = np.array([sample.passed])
        arrays["sample_counts"] = np.array([sample.seen, sample.review_at])
    return arrays


def unpack(choices: Choices, arrays: dict[str, AnyArray]) -> Learner:
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
    held = growth = scale = None
    if "scale" in optional:
        scale = validation.as_scale(optional["scale"], n_features)
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
    sample = _sample(optional, n_features) if "sample_rows" in optional else None
    return Learner(choices, components, scale, held, growth, sample)


def _sample(arrays: dict[str, AnyArray], n_features: int) -> Sample:
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
    return Sample(rows, weights, ranks, float(passed[0]), seen, review_at, shares, log_dets)


def _count(array: AnyArray) -> int:
    if array.shape != (1,) or array.dtype.kind != "i" or array[0] < 0:
        raise ValueError("a count must be one integer that is not negative")
    return int(array[0])
