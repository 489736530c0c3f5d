"""Values of actions as mixtures over [state, value], fitted again and again to new values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from scipy import sparse

from figmn._typing import AnyArray, Array, Index
from figmn.mixture import Mixture
from figmn.rl.dynamics import spread_of
from figmn.rl.loops import largest_shares
from figmn.rl.memory import Episode

_LEAST_SHARE: Final = 1e-3  # of a component in a state, below which it is left out
_LEAST_DEVIATION: Final = 1e-3  # of values in a component, in units of all values' deviation


@dataclass(frozen=True)
class Steps:
    """Steps of whole episodes.

    Attributes
    ----------
    states : array of shape (M, D)
        Of all episodes, one after the other, each with its last state.
    first : int array of shape (N,)
        Where in ``states`` a step begins; it ends at the position after it.
    actions : int array of shape (N,)
    rewards : array of shape (N,)
    terminal : bool array of shape (N,)
        Whether the state after the step is.
    """

    states: Array
    first: Index
    actions: Index
    rewards: Array
    terminal: AnyArray

    def __len__(self) -> int:
        return len(self.actions)

    @classmethod
    def of(cls, episodes: list[Episode]) -> Self:
        """All steps of some episodes."""
        lengths = np.array([len(episode) for episode in episodes])
        count = int(lengths.sum())
        terminal = np.zeros(count, dtype=bool)
        terminal[np.cumsum(lengths) - 1] = [episode.ended for episode in episodes]
        return cls(
            np.concatenate([episode.states for episode in episodes]),
            np.arange(count) + np.repeat(np.arange(len(episodes)), lengths),
            np.concatenate([episode.actions for episode in episodes]),
            np.concatenate([episode.rewards for episode in episodes]),
            terminal,
        )


class MixtureValues:
    """Values of actions: one mixture over [state, value] for each action.

    The mixtures find their components in one pass over all steps. Values that come later
    change the components' regressions alone: which component answers for a state is
    computed once, so that fitting other values to the same steps, and evaluating them in
    all states, is little more than two products with sparse matrices.

    A state where an action has not been tried, judged by the density of that action's
    mixture, is given the optimistic value: as if ``doubt`` rows with it had been spread
    over the whole space.

    Parameters
    ----------
    n_variables, n_actions : int
    low, optimistic : float
        The least and the greatest value there can be.
    doubt : float
    **settings
        As for :class:`figmn.Mixture`, for states and values in units of their spread.
    """

    def __init__(
        self,
        n_variables: int,
        n_actions: int,
        *,
        low: float,
        optimistic: float,
        doubt: float,
        **settings: Any,
    ) -> None:
        self.low, self.optimistic = low, optimistic
        self.center, self.spread = np.zeros(n_variables), np.ones(n_variables)
        self.mixtures = [Mixture(n_variables + 1, scale=1.0, **settings) for _ in range(n_actions)]
        self._settings = settings
        self._doubt = doubt * (2.0 * np.pi) ** (-n_variables / 2.0)
        self._masses = np.zeros(n_actions)

    # -- Learning --------------------------------------------------------------

    def place(self, steps: Steps, values: Array, random: np.random.Generator) -> None:
        """Find components for steps and their values of shape (N,), in random order."""
        before = steps.states[steps.first]
        self.center, self.spread = before.mean(axis=0), spread_of(before)
        self._unit, self._n_states = float(values.std()) or 1.0, len(steps.states)
        states = self._standard(steps.states)
        rows = np.column_stack([states[steps.first], values / self._unit])
        order = random.permutation(len(steps))
        self._fits: dict[int, _Fit] = {}
        for action in np.unique(steps.actions):
            mixture = self.mixtures[action].learn(rows[order[steps.actions[order] == action]])
            taken = np.flatnonzero(steps.actions == action)
            self._fits[int(action)] = _Fit(
                mixture, states, steps.first[taken], taken, width=self._settings["delta"]
            )

    def learn(self, values: Array) -> None:
        """Fit the regressions to other values of the same steps."""
        for fit in self._fits.values():
            fit.learn(values)

    def expected(self) -> Array:
        """Optimistic values of all actions in all states of the steps, of shape (M, A)."""
        expected = np.full((self._n_states, len(self.mixtures)), self.optimistic)
        for action, fit in self._fits.items():
            means = np.clip(fit.predict(), self.low, self.optimistic)
            expected[:, action] = self._hopeful(means, fit.rows)
        return expected

    def finish(self, values: Array) -> None:
        """Make mixtures of the regressions, and let go of the steps."""
        for action, fit in self._fits.items():
            least = (_LEAST_DEVIATION * self._unit) ** 2
            self.mixtures[action] = fit.mixture(values, least, **self._settings)
        del self._fits
        self._note_masses()

    # -- Asking ----------------------------------------------------------------

    def _note_masses(self) -> None:
        """Note how many rows the mixtures stand for."""
        for action, mixture in enumerate(self.mixtures):
            if mixture.n_components:
                self._masses[action] = mixture.masses.sum()

    def predict(self, states: Array) -> tuple[Array, Array]:
        """Means and optimistic means in states of shape (N, D), each of shape (N, A)."""
        means = np.full((len(states), len(self.mixtures)), self.optimistic)
        log_density = np.zeros_like(means)
        standard = self._standard(states)
        for action, mixture in enumerate(self.mixtures):
            if self._masses[action] > 0.0:
                mean, log_density[:, action] = mixture.core.mean_given_first(standard)
                means[:, action] = mean[:, 0]
        means = means.clip(self.low, self.optimistic)
        return means, self._hopeful(means, self._masses * np.exp(log_density))

    # -- Files -----------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What was learnt, as plain values and arrays."""
        arrays: dict[str, AnyArray] = {"center": self.center, "spread": self.spread}
        mixtures = []
        for action, mixture in enumerate(self.mixtures):
            settings, own = mixture.to_state()
            mixtures.append(settings)
            arrays |= {f"{action}.{name}": array for name, array in own.items()}
        return {"low": self.low, "optimistic": self.optimistic, "mixtures": mixtures}, arrays

    def restore(self, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        """Inverse of :meth:`to_state`; raises ValueError on what does not fit together."""
        if len(settings["mixtures"]) != len(self.mixtures):
            raise ValueError("there must be one mixture for each action")
        self.low, self.optimistic = float(settings["low"]), float(settings["optimistic"])
        self.center, self.spread = arrays["center"], arrays["spread"]
        for action, mixture_settings in enumerate(settings["mixtures"]):
            start = f"{action}."
            own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            self.mixtures[action] = Mixture.from_state(mixture_settings, own)
        self._note_masses()

    # -- Inside ----------------------------------------------------------------

    def _hopeful(self, means: Array, rows: Array) -> Array:
        evidence = rows / self._doubt
        hopeful: Array = (self.optimistic + evidence * means) / (1.0 + evidence)
        return hopeful

    def _standard(self, states: Array) -> Array:
        standard: Array = (states - self.center) / self.spread
        return standard


class _Fit:
    """The components of one action's mixture, with regressions of changing values.

    Parameters
    ----------
    mixture : Mixture
        Over [state, value].
    states : array of shape (M, D)
        Where values are asked for.
    first : int array of shape (N,)
        Positions in these of the steps to learn from.
    taken : int array of shape (N,)
        Positions of these steps' values among those of all actions.
    width : float
        Of a new component.

    Attributes
    ----------
    rows : array of shape (M,)
        How many rows were learnt around each state, as a density.
    """

    def __init__(
        self, mixture: Mixture, states: Array, first: Index, taken: Index, *, width: float
    ) -> None:
        self._mixture, self._taken = mixture, taken
        self._everywhere, log_density = _features(states, mixture)
        self.rows = mixture.masses.sum() * np.exp(log_density)
        self._own = self._everywhere[first]
        self._own_transposed = self._own.T.tocsr()
        moments = _moments(self._own, states.shape[1] + 1)
        self._masses = moments[:, 0, 0].copy()
        diagonal = np.arange(1, moments.shape[1])
        # Slopes are held back as by one more row at a typical distance: a component of a
        # few rows must not extrapolate what these happen to differ by.
        moments[:, diagonal, diagonal] += width**2
        self._inverses = np.linalg.inv(moments)
        self._coefficients: Array = np.zeros((len(moments), moments.shape[1]))

    def learn(self, values: Array) -> None:
        """Fit each component's regression to the values of all steps, by its shares in them."""
        own = values[self._taken]
        middle = own.mean()
        sums = (self._own_transposed @ (own - middle)).reshape(self._coefficients.shape)
        self._coefficients = np.einsum("kij,kj->ki", self._inverses, sums)
        self._coefficients[:, 0] += middle

    def predict(self) -> Array:
        """Means in all states."""
        means: Array = self._everywhere @ self._coefficients.ravel()
        return means

    def mixture(self, values: Array, least_variance: float, **settings: Any) -> Mixture:
        """The mixture over [state, value] that the regressions belong to."""
        squares = (values[self._taken] - self._own @ self._coefficients.ravel()) ** 2
        n_components, size = self._coefficients.shape
        variances = (self._own_transposed @ squares).reshape(n_components, size)[:, 0]
        variances /= self._masses
        offsets, slopes = self._coefficients[:, :1], self._coefficients[:, 1:]
        known = self._mixture.covariances[:, :-1, :-1]
        cross = np.einsum("kij,kj->ki", known, slopes)
        covariances = np.empty((n_components, size, size))
        covariances[:, :-1, :-1] = known
        covariances[:, :-1, -1] = covariances[:, -1, :-1] = cross
        explained = np.einsum("ki,ki->k", cross, slopes)
        covariances[:, -1, -1] = explained + np.maximum(variances, least_variance)
        masses = self._mixture.masses
        return Mixture.from_parameters(
            np.column_stack([self._mixture.means[:, :-1], offsets]),
            covariances,
            masses,
            mass=masses.sum(),
            scale=1.0,
            **settings,
        )


def _features(states: Array, mixture: Mixture) -> tuple[Any, Array]:
    """What a mixture's conditional mean in states is a linear function of.

    Returns
    -------
    features : sparse matrix of shape (M, K (D + 1))
        For each state and component the component's share, times [1, distance from center].
    log_density : array of shape (M,)
    """
    n_known, components = states.shape[1], mixture.core.components()
    centers = np.ascontiguousarray(components.means[:, :n_known])
    whiteners, variances = (part[:, :n_known] for part in components.factors())
    whiteners = whiteners[:, :, :n_known] / np.sqrt(variances)[:, :, np.newaxis]
    log_volumes = 0.5 * (np.log(variances).sum(axis=1) + n_known * np.log(2 * np.pi))
    log_density = np.empty(len(states))
    starts, chosen, shares = largest_shares(
        states,
        centers,
        np.ascontiguousarray(whiteners),
        np.log(components.weights) - log_volumes,
        _LEAST_SHARE,
        log_density,
    )
    size = states.shape[1] + 1
    distances = np.repeat(states, np.diff(starts), axis=0) - centers[chosen]
    entries = shares[:, np.newaxis] * np.column_stack([np.ones(len(shares)), distances])
    columns = chosen[:, np.newaxis] * size + np.arange(size)
    shape = (len(states), len(centers) * size)
    features = sparse.csr_matrix((entries.ravel(), columns.ravel(), starts * size), shape=shape)
    return features, log_density


def _moments(features: Any, size: int) -> Array:
    """Sums of share times [1, distance] [1, distance]^T over the states: (K, size, size)."""
    entries = features.data.reshape(-1, size)
    components = features.indices[::size] // size
    products = entries[:, :, np.newaxis] * (entries / entries[:, :1])[:, np.newaxis, :]
    n_components = features.shape[1] // size
    order = np.arange(len(entries))
    belongs = sparse.csr_matrix(
        (np.ones(len(entries)), (components, order)), shape=(n_components, len(entries))
    )
    moments: Array = (belongs @ products.reshape(len(entries), -1)).reshape(-1, size, size)
    moments[:, 0, 0] += _LEAST_SHARE  # some component may have no share in any state
    return moments
