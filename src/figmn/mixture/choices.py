"""The settings of a mixture, checked once and then fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtri

from figmn._typing import Array
from figmn.kernels.compiler import LARGEST
from figmn.kernels.learning import Settings
from figmn.mixture.validation import check_count, check_number

# In the long run all mass is that of 1.44 half-lives of rows.
_HALF_A_ROW: Final = 0.5 * float(np.log(2.0))
_UNBOUNDED: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Choices:
    """Settings that apply to mixtures of any variables; see :class:`figmn.Mixture`."""

    delta: float = 1.0
    beta: float = 0.1
    max_components: int | None = None
    prune_age: int = 0
    prune_mass: float = 0.0
    update: str = "exact"
    warmup: int = 100
    half_life: float | None = None

    def __post_init__(self) -> None:
        checked = {
            "delta": check_number(self.delta, "delta", 0.0, LARGEST, open_low=True),
            "beta": check_number(self.beta, "beta", 0.0, 1.0),
            "prune_age": check_count(self.prune_age, "prune_age", 0),
            "prune_mass": check_number(self.prune_mass, "prune_mass", 0.0, LARGEST),
            "warmup": check_count(self.warmup, "warmup", 1),
        }
        if self.max_components is not None:
            checked["max_components"] = check_count(self.max_components, "max_components", 1)
        if self.half_life is not None:
            checked["half_life"] = check_number(
                self.half_life, "half_life", 0.0, LARGEST, open_low=True
            )
        if self.update not in ("exact", "paper"):
            raise ValueError(f"update must be 'exact' or 'paper', not {self.update!r}.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def for_kernel(self, n_features: int, scale: Array | None) -> Settings:
        """What the learning loop needs to know."""
        thresholds = np.full(n_features + 1, np.inf)
        if self.beta > 0.0:
            thresholds[1:] = chdtri(np.arange(1, n_features + 1), self.beta)
        bound = _UNBOUNDED if self.max_components is None else self.max_components
        return Settings(
            thresholds=thresholds,
            scale=np.ones(n_features) if scale is None else scale,
            adaptive=scale is None,
            delta=self.delta,
            prune_age=min(self.prune_age, _UNBOUNDED),
            prune_mass=self.prune_mass,
            max_components=min(bound, _UNBOUNDED),
            printed_rule=self.update == "paper",
            retention=1.0 if self.half_life is None else 2.0 ** (-1.0 / self.half_life),
            faded=0.0 if self.half_life is None else _HALF_A_ROW / max(self.half_life, 1.0),
        )
