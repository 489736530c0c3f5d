"""A picture of the time of each row, before and now."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np

from live.rows import duration
from live.trace import N_FEATURES, times_of

_OWN: Final = Path(__file__).parents[2] / "src"
_COLORS: Final = {"before": "tab:red", "now": "tab:blue"}
_WARM_UP: Final = 2048  # rows


def run(options: argparse.Namespace) -> None:
    """Measure one version or two, print their longest rows, and draw all rows."""
    sources = {"before": options.before, "now": _OWN}
    times = {
        name: times_of(source, options.rows, options.repeats)
        for name, source in sources.items()
        if source
    }
    print(f"Density, D = {N_FEATURES}, {options.rows:,} rows, each scored, then learnt:\n")
    for name, each in times.items():
        print(
            f"- {name}: median {duration(np.median(each))}, longest {duration(each.max())} "
            f"at row {each.argmax() + 1:,}, {each.sum():.2f} s in all"
        )
    draw(times, options.plot)


def draw(times: dict[str, np.ndarray], path: Path) -> None:
    """A panel for each version, on the same logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(times), 4.0), layout="constrained")
    panels = figure.subplots(1, len(times), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, each) in zip(panels, times.items(), strict=True):
        _draw_rows(panel, name if len(times) > 1 else "now", each)
    panels[0].set_ylabel("time to score a row, then learn it")
    figure.suptitle(f"Each of {len(each):,} rows, D = {N_FEATURES}, one thread")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_rows(panel: Any, name: str, times: np.ndarray) -> None:
    numbers = np.arange(1, len(times) + 1)
    panel.loglog(numbers, times, ".", markersize=2.5, color=_COLORS[name], rasterized=True)
    panel.margins(y=0.1)
    longest = int(times.argmax())
    panel.plot(numbers[longest], times[longest], "o", color="black", markersize=4)
    panel.set_title(
        f"{name}: median {duration(np.median(times))}, "
        f"longest {duration(times[longest])}, at row {longest + 1:,}",
        fontsize=10,
    )
    if len(times) > _WARM_UP:
        panel.axvline(_WARM_UP, color="gray", linewidth=0.8, linestyle="--")
        panel.annotate(
            f" {_WARM_UP:,}", (_WARM_UP, 0.97), xycoords=("data", "axes fraction"),
            ha="left", va="top", fontsize=8, color="gray",
        )  # fmt: skip
    panel.set_xlabel("number of the row")
    panel.yaxis.set_major_formatter(lambda value, _: duration(value))
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.grid(alpha=0.3)
