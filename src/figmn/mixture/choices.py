"""The settings of a mixture, checked once and then fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtri

from figmn._typing import Array
from figmn.batch.selection import Preferences
from figmn.kernels.compiler import LARGEST
from figmn.kernels.learning import Settings
from figmn.mixture.start import NOVELTY, Growth
from figmn.mixture.validation import check_count, check_number

# In the long run all mass is that of 1.44 half-lives of rows.
_HALF_A_ROW: Final = 0.5 * float(np.log(2.0))
_UNBOUNDED: Final = int(np.iinfo(np.int64).max)
_FIXED_DELTA, _FIXED_BETA = 1.0, 0.1  # where one of them is set, or nothing is chosen
_WARMUP_FOR_SCALE, _WARMUP_FOR_START = 100, 2048
_PARSIMONY_ON_THE_WAY, _PARSIMONY_AT_THE_END = 0.5, 1.0


@dataclass(frozen=True)
class Choices:
    """Settings that apply to mixtures of any variables; see :class:`figmn.Mixture`."""

    delta: float | str = "auto"
    beta: float | str = "auto"
    max_components: int | None = None
    prune_age: int = 0
    prune_mass: float = 0.0
    update: str = "exact"
    warmup: int | None = None
    half_life: float | None = None
    shrinkage: float | None = None
    parsimony: float | None = None

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "prune_age": check_count(self.prune_age, "prune_age", 0),
            "prune_mass": check_number(self.prune_mass, "prune_mass", 0.0, LARGEST),
        }
        if not is_auto(self.delta):
            checked["delta"] = check_number(self.delta, "delta", 0.0, LARGEST, open_low=True)
        if not is_auto(self.beta):
            checked["beta"] = check_number(self.beta, "beta", 0.0, 1.0)
        if self.warmup is not None:
            checked["warmup"] = check_count(self.warmup, "warmup", 1)
        if self.max_components is not None:
            checked["max_components"] = check_count(self.max_components, "max_components", 1)
        if self.half_life is not None:
            checked["half_life"] = check_number(
                self.half_life, "half_life", 0.0, LARGEST, open_low=True
            )
        if self.shrinkage is not None:
            checked["shrinkage"] = check_number(self.shrinkage, "shrinkage", 0.0, LARGEST)
        if self.parsimony is not None:
            checked["parsimony"] = check_number(self.parsimony, "parsimony", 0.0, LARGEST)
        if self.update not in ("exact", "paper"):
            raise ValueError(f"update must be 'exact' or 'paper', not {self.update!r}.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def start_from_batch(self) -> bool:
        """Whether a mixture fits its first rows by EM, and goes on from there."""
        return is_auto(self.delta) and is_auto(self.beta) and self.update == "exact"

    @property
    def warmup_rows(self) -> int:
        """How many rows are held back before learning begins."""
        if self.warmup is not None:
            return self.warmup
        return _WARMUP_FOR_START if self.start_from_batch else _WARMUP_FOR_SCALE

    def preferences(self, final: bool) -> Preferences:
        """What a start by EM is to look for; ``final`` if no further rows are known to come."""
        parsimony = self.parsimony
        if parsimony is None:
            # A longer stream will support more components.
            parsimony = _PARSIMONY_AT_THE_END if final else _PARSIMONY_ON_THE_WAY
        return Preferences(self.max_components, self.shrinkage, parsimony)

    @property
    def width(self) -> float:
        """Delta as a number."""
        return _FIXED_DELTA if isinstance(self.delta, str) else self.delta

    @property
    def retention(self) -> float:
        """What a row of weight one leaves of the masses before it."""
        return 1.0 if self.half_life is None else float(2.0 ** (-1.0 / self.half_life))

    def for_kernel(
        self, n_features: int, scale: Array | None, growth: Growth | None = None
    ) -> Settings:
        """What the learning loop needs to know."""
        beta = _FIXED_BETA if isinstance(self.beta, str) else self.beta
        bound = _UNBOUNDED if self.max_components is None else self.max_components
        if growth is not None:
            beta, scale, bound = NOVELTY, growth.scale, min(bound, growth.most)
        thresholds = np.full(n_features + 1, np.inf)
        if beta > 0.0:
            thresholds[1:] = chdtri(np.arange(1, n_features + 1), beta)
        return Settings(
            thresholds=thresholds,
            scale=np.ones(n_features) if scale is None else scale,
            adaptive=scale is None,
            delta=self.width,
            prune_age=min(self.prune_age, _UNBOUNDED),
            prune_mass=self.prune_mass,
            max_components=min(bound, _UNBOUNDED),
            printed_rule=self.update == "paper",
            retention=self.retention,
            faded=0.0 if self.half_life is None else _HALF_A_ROW / max(self.half_life, 1.0),
        )


def is_auto(value: object) -> bool:
    """Whether a setting is left to the mixture."""
    return isinstance(value, str) and value == "auto"
