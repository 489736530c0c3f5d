"""The main job: stream the bundled data sets through the estimators, in one pass.

Run it with ``make demo``. Every row is first predicted, then learnt (test-then-train),
and scikit-learn's batch models are judged by ten-fold cross-validation on the same
rows. A picture of a mixture that grows on two-dimensional data goes to ``output/``.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from figmn import IncrementalGaussianMixture, MixtureClassifier, MixtureRegressor
from figmn.datasets import NAMES, load_dataset

try:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Ellipse
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
except ImportError as error:
    raise SystemExit(
        f"The demonstration needs {error.name}: run `make demo`, "
        "or install it with `pip install 'figmn[demo]'`."
    ) from None

N_FOLDS = 10


def batch_classifiers() -> dict[str, BaseEstimator]:
    """Batch models to compare with, at scikit-learn's defaults."""
    return {
        "random forest": make_pipeline(SimpleImputer(), RandomForestClassifier(random_state=0)),
        "logistic": make_pipeline(
            SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000)
        ),
    }


def batch_regressors() -> dict[str, BaseEstimator]:
    """Batch models to compare with, at scikit-learn's defaults."""
    return {
        "random forest": RandomForestRegressor(random_state=0),
        "ridge": make_pipeline(StandardScaler(), Ridge()),
    }


def test_then_train(model, X, y, advance):
    """Predict each row before learning it; the first is only learnt."""
    predictions = np.empty(len(y), dtype=np.asarray(y).dtype)
    model.partial_fit(X[:1], y[:1])
    for row in range(1, len(y)):
        predictions[row] = model.predict(X[row : row + 1])[0]
        model.partial_fit(X[row : row + 1], y[row : row + 1])
        advance(1)
    return predictions[1:], y[1:]


def on_folds(model, X, y, folds, advance):
    """Score of each fold, and the last fitted model."""
    scores = []
    for train, test in folds:
        fitted = clone(model).fit(X[train], y[train])
        scores.append(fitted.score(X[test], y[test]))
        advance(len(train))
    return np.array(scores), fitted


def shuffled(X, y, seed=0):
    """Rows in a random but fixed order."""
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def compare(X, y, ours, others, folds, advance):
    """Scores of ours and of batch models on the same folds, and of ours in one stream."""
    predictions, truth = test_then_train(clone(ours), X, y, advance)
    scores, fitted = on_folds(ours, X, y, folds, advance)
    row = {"stream": (predictions, truth), "ours": scores, "components": fitted.n_components_}
    for name, model in others.items():
        row[name] = on_folds(model, X, y, folds, advance)[0]
    return row


def classification(names, advance) -> Table:
    """Accuracy on the seven data sets of the paper."""
    table = Table(title="Classification: accuracy in per cent")
    columns = ("data set", "rows", "columns", "test-then-train", "ours", "components")
    others = batch_classifiers()
    for column in (*columns, *others):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for name in names:
        dataset = load_dataset(name)
        X, y = shuffled(dataset.data, dataset.target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # soybean has a class of eight
            folds = list(StratifiedKFold(N_FOLDS).split(X, y))
            result = compare(X, y, MixtureClassifier(), others, folds, advance)
        predictions, truth = result["stream"]
        table.add_row(
            name,
            str(len(y)),
            str(X.shape[1]),
            f"{100 * np.mean(predictions == truth):.1f}",
            spread(100 * result["ours"]),
            str(result["components"]),
            *(spread(100 * result[other]) for other in others),
        )
    return table


def regression(advance) -> Table:
    """Error on scikit-learn's diabetes data, and the width of the error bars."""
    X, y = shuffled(*load_diabetes(return_X_y=True))
    folds = list(KFold(N_FOLDS).split(X))
    others = batch_regressors()
    ours = MixtureRegressor()
    result = compare(X, y, ours, others, folds, advance)
    predictions, truth = result["stream"]
    inside = []
    for train, test in folds:
        mean, std = clone(ours).fit(X[train], y[train]).predict(X[test], return_std=True)
        inside.extend(np.abs(y[test] - mean) < 1.645 * std)
    table = Table(title="Regression: diabetes, 442 rows, 10 columns")
    for column in ("", "test-then-train", "ours", *others):
        table.add_column(column, justify="right")
    error = np.sqrt(np.mean((predictions - truth) ** 2))
    table.add_row("RMSE", f"{error:.1f}", *(rmse(result[n], y) for n in ("ours", *others)))
    table.add_row("R2", "", *(spread(result[n], 2) for n in ("ours", *others)))
    table.add_row("in 90 % interval", "", f"{100 * np.mean(inside):.0f} %", *[""] * len(others))
    table.add_row("components", "", str(result["components"]), *[""] * len(others))
    return table


def rmse(scores, y) -> str:
    """Root mean squared error that belongs to coefficients of determination."""
    return f"{np.sqrt(np.mean((1 - scores) * np.var(y))):.1f}"


def spread(scores, digits=1) -> str:
    """Mean and standard deviation over folds."""
    return f"{np.mean(scores):.{digits}f} +- {np.std(scores):.{digits}f}"


def draw_growth(path: Path) -> None:
    """Draw a mixture at four moments of a stream along a noisy spiral."""
    rng = np.random.default_rng(3)
    angle = 3.5 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, 6000))
    rows = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    rows += 0.35 * rng.normal(size=rows.shape)
    model = IncrementalGaussianMixture(delta=0.25, beta=0.02)
    figure, axes = plt.subplots(1, 4, figsize=(14, 4.0), layout="constrained")
    start = 0
    for axis, stop in zip(axes, (60, 300, 1500, 6000), strict=True):
        model.partial_fit(rows[start:stop])
        start = stop
        axis.scatter(*rows[:stop].T, s=3, color="0.75", linewidths=0)
        for mean, covariance, weight in zip(
            model.means_, model.covariances_, model.weights_, strict=True
        ):
            values, vectors = np.linalg.eigh(covariance)
            axis.add_patch(
                Ellipse(
                    mean,
                    *(4.0 * np.sqrt(values)),
                    angle=np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])),
                    facecolor="tab:blue",
                    edgecolor="tab:blue",
                    alpha=min(0.25 + 3.0 * weight, 0.8),
                )
            )
        axis.set(
            xlim=(-13, 13),
            ylim=(-13, 13),
            aspect="equal",
            xticks=[],
            yticks=[],
            title=f"{stop} rows, {model.n_components_} components",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("output"), help="folder of the picture"
    )
    parser.add_argument("--datasets", nargs="+", choices=NAMES, default=list(NAMES))
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 120)
    console.print("The first run compiles the kernels, which takes some 15 seconds.")
    sizes = [len(load_dataset(name).target) for name in options.datasets] + [442]
    passes = 1 + (1 + len(batch_classifiers())) * (N_FOLDS - 1)
    with Progress(console=console) as progress:
        task = progress.add_task("learning", total=sum(passes * size for size in sizes))

        def advance(rows: int) -> None:
            progress.advance(task, rows)

        tables = [classification(options.datasets, advance), regression(advance)]
    for table in tables:
        console.print(table)
    console.print(
        "[dim]ours and the batch models: mean and standard deviation over ten folds; "
        "ours has seen each row once.[/dim]"
    )
    picture = options.output / "growth.png"
    draw_growth(picture)
    console.print(f"A mixture growing on a spiral: {picture}")


if __name__ == "__main__":
    main()
