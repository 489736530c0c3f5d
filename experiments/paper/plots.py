"""Pictures as SVG text that needs nothing else, and as PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from paper.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#c44e52", "#2f6db3", "#4c9a5b", "#8172b3")
_STYLE: Final[Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "svg.fonttype": "path",  # looks the same on a machine without the font
    "svg.hashsalt": "figmn",  # the same picture, the same text
}


class Drawing(NamedTuple):
    """A picture."""

    svg: str
    png: bytes


class Curve(NamedTuple):
    """Points to be joined by lines."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


class Snapshot(NamedTuple):
    """Rows so far, of shape (N, 2), and the components learnt from them."""

    rows: Array
    means: Array
    covariances: Array
    weights: Array


def log_log(panels: Mapping[str, Iterable[Curve]], x_label: str, y_label: str) -> Drawing:
    """Curves on logarithmic axes, a panel for each title."""
    figure, axes = _panels(len(panels), 4.6, 3.6)
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for colour, curve in zip(COLOURS, curves, strict=False):
            axis.loglog(curve.x, curve.y, "o-", color=colour, label=curve.label, markersize=4)
        axis.set(title=title, xlabel=x_label, ylabel=y_label)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.grid(alpha=0.25)
        axis.legend(frameon=False)
    return _drawn(figure)


def curves(panels: Mapping[str, Iterable[Curve]], x_label: str, y_label: str) -> Drawing:
    """Curves on linear axes, a panel for each title, under one legend."""
    figure, axes = _panels(len(panels), 3.6, 3.4)
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for colour, curve in zip(COLOURS, lines, strict=False):
            axis.plot(curve.x, curve.y, color=colour, label=curve.label, linewidth=1.3)
        axis.set(title=title, xlabel=x_label)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel(y_label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=len(labels), loc="outside upper center")
    return _drawn(figure)


def bars(groups: Mapping[str, Mapping[str, float]], x_label: str, start: float = 0.0) -> Drawing:
    """Horizontal bars: a group for each name, a bar in it for each label."""
    labels = list(next(iter(groups.values())))
    figure, (axis,) = _panels(1, 9.2, 0.5 + 0.13 * len(groups) * (len(labels) + 1.5))
    height = 0.85 / len(labels)
    places = np.arange(len(groups))
    for i, label in enumerate(labels):
        values = [group[label] for group in groups.values()]
        axis.barh(places + i * height, values, height, color=COLOURS[i], label=label)
    axis.set_yticks(places + 0.5 * (len(labels) - 1) * height, list(groups))
    axis.invert_yaxis()
    axis.set(xlabel=x_label, xlim=(start, None))
    axis.grid(axis="x", alpha=0.25)
    axis.legend(frameon=False, ncols=len(labels), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return _drawn(figure)


def growth(snapshots: Sequence[Snapshot]) -> Drawing:
    """A mixture of two variables at moments of a stream: ellipses of two deviations."""
    figure, axes = _panels(len(snapshots), 3.0, 3.2)
    reach = 1.2 * np.abs(snapshots[-1].rows).max()
    for axis, snapshot in zip(axes, snapshots, strict=True):
        # Thousands of points are better as a picture than as thousands of shapes.
        x, y = snapshot.rows.T
        axis.scatter(x, y, s=2, color="0.45", linewidths=0, rasterized=True)
        for mean, covariance, weight in zip(
            snapshot.means, snapshot.covariances, snapshot.weights, strict=True
        ):
            _ellipse(axis, mean, covariance, alpha=min(0.1 + 5.0 * weight, 0.6))
        axis.set(
            xlim=(-reach, reach),
            ylim=(-reach, reach),
            aspect="equal",
            xticks=[],
            yticks=[],
            frame_on=False,
            title=f"{len(snapshot.rows):,} rows, {len(snapshot.means)} components",
        )
    return _drawn(figure)


def images(rows: Array, titles: Sequence[str], n_columns: int) -> Drawing:
    """Square grey images of shape (N, D), each under its title."""
    side = round(rows.shape[1] ** 0.5)
    figure, axes = _panels(n_columns, 0.9, 1.05, n_lines=-(-len(rows) // n_columns))
    for axis in axes:
        axis.set_axis_off()
    for axis, row, title in zip(axes, rows, titles, strict=False):
        axis.imshow(row.reshape(side, side), cmap="gray_r", interpolation="nearest")
        axis.set_title(title, fontsize=8)
    return _drawn(figure)


def _ellipse(axis: Axes, mean: Array, covariance: Array, alpha: float) -> None:
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    width, height = 4.0 * np.sqrt(values)
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    axis.add_patch(
        Ellipse((mean[0], mean[1]), width, height, angle=angle, color=COLOURS[1], alpha=alpha)
    )


def _panels(
    count: int, width: float, height: float, n_lines: int = 1
) -> tuple[Figure, list[Axes]]:
    """A figure, and its panels line by line, each of a size in inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width * count, height * n_lines), layout="constrained")
        axes = figure.subplots(n_lines, count, squeeze=False)
    return figure, list(axes.flat)


def _drawn(figure: Figure) -> Drawing:
    from matplotlib import rc_context

    text, image = io.StringIO(), io.BytesIO()
    with rc_context(_STYLE):
        figure.savefig(text, format="svg", dpi=150, metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(image, format="png", dpi=110, bbox_inches="tight")
    drawing = text.getvalue()
    return Drawing(drawing[drawing.index("<svg") :], image.getvalue())
