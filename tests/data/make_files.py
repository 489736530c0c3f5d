"""Write model files, and what they answer, with the version of figmn that is installed.

    python tests/data/make_files.py tests/data/0.1.0

writes ``NAME.figmn`` and ``NAME.npz`` for every model below. The second file holds the rows
to ask about (``asked``), the rows to go on with (``further_...``), and what the model
answered before these (``before_...``) and after (``after_...``). ``test_model_files.py``
asks later versions the same. Files of a released version are never written anew: run this once,
before a release, into a folder of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import figmn

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the environments of the agents


# -- What is asked, and how a model goes on ------------------------------------


def ask(model, rows):
    """All answers of a model to some rows, by name."""
    answers = _QUESTIONS[type(model).__name__](model, rows)
    return {name: np.asarray(values, dtype=float) for name, values in answers.items()}


def _ask_mixture(model, rows):
    half = model.n_features // 2
    answer = model.infer(
        rows[:, :half], known=range(half), wanted=range(half, min(half + 3, model.n_features))
    )
    return {
        "log_density": model.log_density(rows),
        "log_tail": model.log_tail(rows),
        "mean": answer.mean(),
        "std": answer.std(),
        "components": model.n_components,
        "learnt": model.n_learnt,
    }


def _ask_regressor(model, rows):
    mean, std = model.predict(rows, return_std=True)
    return {"mean": mean, "std": std, "quantiles": model.predict_quantiles(rows)}


def _ask_detector(model, rows):
    return {"scores": model.score_samples(rows), "decision": model.decision_function(rows)}


def _ask_agent(model, rows):
    return {
        "values": model.values(rows),
        "actions": [model.act(row) for row in rows],
        "returns": model.history.returns,
    }


_QUESTIONS = {
    "Mixture": _ask_mixture,
    "IncrementalGaussianMixture": lambda model, rows: {
        "log_density": model.score_samples(rows),
        "posteriors": model.predict_proba(rows),
    },
    "MixtureClassifier": lambda model, rows: {"probabilities": model.predict_proba(rows)},
    "MixtureRegressor": _ask_regressor,
    "MixtureImputer": lambda model, rows: {"filled": model.transform(rows)},
    "MixtureOutlierDetector": _ask_detector,
    "PlanningAgent": _ask_agent,
    "QLearningAgent": _ask_agent,
}


def go_on(model, further):
    """Let a model learn what ``further`` holds: rows, and labels or targets and weights."""
    if "episodes" in further:
        from rl_environments import Chain

        model.learn(Chain(), int(further["episodes"]), progress=False)
        return
    weights = further.get("weights")
    if "y" in further:
        model.partial_fit(further["X"], further["y"], sample_weight=weights)
    elif hasattr(model, "partial_fit"):
        model.partial_fit(further["X"], sample_weight=weights)
    else:
        model.learn(further["X"], weights)
    if "consolidate" in further:
        model.consolidate()


# -- The models ----------------------------------------------------------------


def _rows(count, n_features, seed, shift=0.0, gaps=0.0):
    """Rows of three overlapping clusters.

    Digits are few where there are many variables, for small files. Elsewhere ties would put
    fits on a knife's edge, where rounding decides.
    """
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=count)
    shapes = np.random.default_rng(n_features).normal(size=(3, n_features, n_features))
    noise = rng.normal(size=(count, n_features))
    rows = np.einsum("nij,nj->ni", shapes[which] / np.sqrt(n_features), noise)
    rows[:, 0] += 3.0 * which + shift
    rows = np.round(rows, 2 if n_features > 3 else 6)
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows, which


def _mixture(
    n_features, count, more, *, gaps=0.0, weighted=False, shift=0.0, consolidate=False, **settings
):
    """A mixture, and the rows with which it goes on."""
    rng = np.random.default_rng(7)
    rows, _ = _rows(count, n_features, 1, gaps=gaps)
    further = {"X": _rows(more, n_features, 2, shift, gaps)[0]}
    if consolidate:
        further["consolidate"] = True
    weights = None
    if weighted:
        weights, further["weights"] = (np.round(rng.uniform(0, 2, n), 1) for n in (count, more))
    return figmn.Mixture(n_features, **settings).learn(rows, weights), further


def _classifier(count, more, *, n_classes=3, **settings):
    """A classifier of three classes, the last of which may be new to it later."""
    rows, which = _rows(count, 3, 1)
    further, labels = _rows(more, 3, 2)
    names = np.array(["ash", "birch", "cedar"])
    seen = which < n_classes
    model = figmn.MixtureClassifier(**settings)
    model.partial_fit(rows[seen], names[which[seen]])
    return model, {"X": further, "y": names[labels]}


def _estimator(cls, count, more, *, gaps=0.0, supervised=False, fit=False, **settings):
    rows, more_rows = (_rows(n, 3, seed, gaps=gaps)[0] for n, seed in ((count, 1), (more, 2)))
    model, further = cls(**settings), {"X": more_rows}
    learn = model.fit if fit else model.partial_fit
    if not supervised:
        return learn(rows), further
    targets, further["y"] = (
        np.round(np.sin(X[:, 0]) + X[:, 1] ** 2, 3) for X in (rows, more_rows)
    )
    return learn(rows, targets), further


def _agent(name, **settings):
    import figmn.rl
    from rl_environments import Chain

    agent = getattr(figmn.rl, name)(seed=3, **settings)
    agent.learn(Chain(), 4, progress=False)
    return agent, {"episodes": np.array(2)}


def models():
    """Each model with what it goes on with, by name; made one at a time."""
    set_by_hand = {"delta": 0.6, "beta": 0.05}
    given = {"scale": 1.0, "delta": 1.0}
    regressor = {"supervised": True}
    return {
        "mixture-in-warm-up": lambda: _mixture(3, 150, 80),
        "mixture-ends-warm-up": lambda: _mixture(3, 250, 200, warmup=300),
        "mixture-with-gaps-in-warm-up": lambda: _mixture(3, 150, 80, gaps=0.1, weighted=True),
        "mixture-with-sample": lambda: _mixture(3, 450, 200, warmup=300),
        "mixture-with-sample-default": lambda: _mixture(2, 2100, 300),
        "mixture-with-sample-moves": lambda: _mixture(
            3, 350, 300, shift=20.0, consolidate=True, warmup=300
        ),
        "mixture-set-by-hand": lambda: _mixture(3, 300, 200, **set_by_hand),
        "mixture-set-by-hand-in-warm-up": lambda: _mixture(3, 60, 100, **set_by_hand),
        "mixture-bounded-and-pruned": lambda: _mixture(
            3, 300, 200, max_components=5, prune_age=20, prune_mass=2.0, **set_by_hand
        ),
        "mixture-with-half-life": lambda: _mixture(
            3, 300, 200, gaps=0.1, weighted=True, half_life=80.0, **set_by_hand
        ),
        "mixture-default-with-half-life": lambda: _mixture(
            3, 350, 200, half_life=200.0, warmup=300
        ),
        "mixture-by-paper": lambda: _mixture(3, 300, 200, update="paper"),
        "mixture-without-rows": lambda: _mixture(3, 0, 150, **set_by_hand),
        "mixture-of-260-young": lambda: _mixture(260, 24, 12, beta=0.01, **given),
        "mixture-of-260-grown": lambda: _mixture(260, 300, 12, beta=0.0, **given),
        "mixture-of-260-in-warm-up": lambda: _mixture(260, 40, 12),
        "density": lambda: _estimator(figmn.IncrementalGaussianMixture, 200, 100, gaps=0.05),
        "density-fitted": lambda: _estimator(figmn.IncrementalGaussianMixture, 200, 100, fit=True),
        "classifier-new-class-later": lambda: _classifier(60, 60, n_classes=2),
        "classifier": lambda: _classifier(130, 80),
        "classifier-set-by-hand": lambda: _classifier(130, 80, **set_by_hand),
        "classifier-tracking": lambda: _classifier(130, 80, half_life=50.0),
        "regressor": lambda: _estimator(figmn.MixtureRegressor, 150, 60, **regressor),
        "regressor-set-by-hand": lambda: _estimator(
            figmn.MixtureRegressor, 150, 60, **regressor, **set_by_hand
        ),
        "imputer": lambda: _estimator(figmn.MixtureImputer, 150, 60, gaps=0.1),
        "detector": lambda: _estimator(figmn.MixtureOutlierDetector, 150, 60),
        "detector-fitted": lambda: _estimator(
            figmn.MixtureOutlierDetector, 150, 60, fit=True, contamination=0.05
        ),
        "planning-agent": lambda: _agent("PlanningAgent"),
        "q-learning-agent": lambda: _agent("QLearningAgent"),
    }


def _asked(name, model):
    """Rows to ask a model about."""
    if name.endswith("agent"):
        return np.array([[0.0], [1.0], [2.5], [4.0]])
    n_features = getattr(model, "n_features", 3)
    count = 5 if n_features > 3 else 12
    return _rows(count, n_features, 3, gaps=0.1)[0]


def main(folder):
    """Write all files into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in models().items():
        model, further = make()
        asked = _asked(name, model)
        path = folder / f"{name}.figmn"
        model.save(path)
        kept = {"asked": asked} | {f"further_{key}": value for key, value in further.items()}
        if name != "mixture-without-rows":
            kept |= {f"before_{key}": value for key, value in ask(model, asked).items()}
        go_on(model, further)
        kept |= {f"after_{key}": value for key, value in ask(model, asked).items()}
        np.savez_compressed(folder / f"{name}.npz", **kept)
        print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
