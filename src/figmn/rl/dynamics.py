"""How an environment answers actions, learnt by mixtures."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
from scipy.spatial import KDTree

from figmn._typing import AnyArray, Array, Index
from figmn.mixture import Mixture
from figmn.rl.memory import Transitions

_ROUNDS: Final = 3  # of telling apart what actions do and what happens by itself
_NEIGHBOURS: Final = 8
_OTHER_ACTION: Final = 0.05  # distance between two actions in the same state
_HIT: Final = 1e-3  # distance below which a step is taken to be the same


class MixtureRegression:
    """Regression of outputs on inputs by one mixture, outputs in units of their spread.

    Outputs are learnt with a little noise: a component then stays wide enough to take up
    rows of which it is right but for that noise, and rows that its linear regression
    fits worse start another one.

    Parameters
    ----------
    mixture : Mixture
        Over inputs and outputs in units of their spread.
    center, spread : arrays of shape (M,)
        Of the outputs.
    """

    def __init__(self, mixture: Mixture, center: Array, spread: Array) -> None:
        self.mixture = mixture
        self.center = center
        self.spread = spread

    @classmethod
    def fit(
        cls,
        inputs: Array,
        outputs: Array,
        noise: float,
        random: np.random.Generator,
        **settings: Any,
    ) -> Self:
        """Learn outputs of shape (N, M) from inputs of shape (N, I) with unit spread."""
        center, spread = outputs.mean(axis=0), spread_of(outputs)
        noisy = (outputs - center) / spread + noise * random.standard_normal(outputs.shape)
        rows = np.column_stack([inputs, noisy])
        # Neighbours in time are neighbours in space: shuffled, the first component
        # of a region sees all of it.
        order = random.permutation(len(rows))
        mixture = Mixture(rows.shape[1], scale=1.0, **settings).learn(rows[order])
        return cls(mixture, center, spread)

    def predict(self, inputs: Array) -> Array:
        """Means of the outputs, of shape (N, M)."""
        means, _ = self.mixture.core.mean_given_first(inputs)
        return means * self.spread + self.center

    def to_state(self, name: str) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The mixture's settings, and all arrays, under names that start with this one."""
        settings, arrays = self.mixture.to_state()
        arrays = {f"{name}.mixture.{key}": array for key, array in arrays.items()}
        return settings, arrays | {f"{name}.center": self.center, f"{name}.spread": self.spread}

    @classmethod
    def from_state(cls, name: str, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Inverse of :meth:`to_state`."""
        start = f"{name}.mixture."
        own = {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}
        mixture = Mixture.from_state(settings, own)
        return cls(mixture, arrays[f"{name}.center"], arrays[f"{name}.spread"])


class MixtureDynamics:
    r"""Changes of state and rewards as :math:`d(s) + e(s, a) + u(s, a)`.

    The drift d, what happens whatever one does, is a mixture over [state, change, reward]
    with as many components as it takes. The effect e of actions is a mixture of a single
    component over [state, action, change, reward], which learns what the drift leaves,
    and the drift learns what the effect leaves, in turns. They are apart because a plan
    compares actions, and their effect is often small beside the drift. An agent that
    acts well hardly ever tries two actions in the same place, so the few rows of one
    small component cannot tell the action's effect from the drift's curvature; all rows
    together can.

    What both leave unexplained, u, comes from the nearest remembered steps, each weighted
    by its inverse squared distance w (in standard deviations), over a total of
    :math:`1 + \sum w`: near a step that was taken the model says what really followed,
    and far from all of them it is the mixtures' own.

    Parameters
    ----------
    n_actions : int
    delta, beta : float
        Of the drift, as for :class:`figmn.Mixture`.
    noise : float
        Added to what is learnt, in units of its spread.
    """

    drift: MixtureRegression
    effect: MixtureRegression
    residuals: Array

    def __init__(self, n_actions: int, *, delta: float, beta: float, noise: float) -> None:
        self.n_actions = n_actions
        self.delta = delta
        self.beta = beta
        self.noise = noise

    def fit(self, steps: Transitions, random: np.random.Generator) -> None:
        """Learn all transitions, of states with unit spread."""
        states, acting = steps.before, self._with_action(steps.before, steps.actions, 1.0)
        changes = np.column_stack([steps.after - steps.before, steps.rewards])
        drift = np.zeros_like(changes)
        for _ in range(_ROUNDS):
            self.effect = MixtureRegression.fit(
                acting, changes - drift, self.noise, random, beta=0.0
            )
            by_itself = changes - self.effect.predict(acting)
            self.drift = MixtureRegression.fit(
                states, by_itself, self.noise, random, delta=self.delta, beta=self.beta
            )
            drift = self.drift.predict(states)
        self._remember(steps, by_itself - drift)

    def predict(self, states: Array, actions: Index) -> tuple[Array, Array]:
        """States and rewards after actions.

        Parameters
        ----------
        states : array of shape (N, D)
        actions : int array of shape (N,)

        Returns
        -------
        after : array of shape (N, D)
        rewards : array of shape (N,)
        """
        changes = self.drift.predict(states)
        changes += self.effect.predict(self._with_action(states, actions, 1.0))
        weights, nearest = self._neighbours(states, actions)
        weights /= 1.0 + weights.sum(axis=1, keepdims=True)
        changes += np.einsum("nk,nkm->nm", weights, self.residuals[nearest])
        return states + changes[:, :-1], changes[:, -1]

    def _with_action(self, states: Array, actions: Index, size: float) -> Array:
        """States with one-hot actions, but for the last, which follows from the others."""
        one_hot = actions[:, np.newaxis] == np.arange(self.n_actions - 1)
        return np.column_stack([states, size * one_hot])

    def _remember(self, steps: Transitions, residuals: Array) -> None:
        self._places = self._with_action(steps.before, steps.actions, _OTHER_ACTION)
        self._tree = KDTree(self._places)
        self.residuals = residuals

    def _neighbours(self, states: Array, actions: Index) -> tuple[Array, Index]:
        """Inverse squared distances of the nearest steps, and which these are: (N, k) each."""
        places = self._with_action(states, actions, _OTHER_ACTION)
        count = min(_NEIGHBOURS, len(self.residuals))
        distances, nearest = self._tree.query(places, k=np.arange(1, count + 1))
        return 1.0 / (distances + _HIT) ** 2, nearest

    # -- Files -----------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What was learnt, as plain values and arrays."""
        drift_settings, drift_arrays = self.drift.to_state("drift")
        effect_settings, effect_arrays = self.effect.to_state("effect")
        arrays = {"places": self._places, "residuals": self.residuals}
        settings = {"drift": drift_settings, "effect": effect_settings}
        return settings, arrays | drift_arrays | effect_arrays

    def restore(self, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        """Inverse of :meth:`to_state`."""
        self.drift = MixtureRegression.from_state("drift", settings["drift"], arrays)
        self.effect = MixtureRegression.from_state("effect", settings["effect"], arrays)
        self._places, self.residuals = arrays["places"], arrays["residuals"]
        self._tree = KDTree(self._places)


def spread_of(columns: Array) -> Array:
    """Standard deviations of the columns; one where there is none."""
    spread: Array = columns.std(axis=0)
    rounding = 1e-12 * np.abs(columns).max(axis=0)
    return np.where(spread > rounding, spread, 1.0)
