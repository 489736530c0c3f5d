"""Figures as text."""

from __future__ import annotations

from paper.statistics import Spread


def plus_minus(value: Spread, digits: int = 1) -> str:
    """Mean and deviation."""
    return f"{value.mean:.{digits}f} ± {value.deviation:.{digits}f}"


def seconds(value: float) -> str:
    """A time with its unit: three significant digits, and days where hours get many."""
    for limit, size, unit in ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (600.0, 1.0, "s")):
        if value < limit:
            return f"{value / size:.3g} {unit}"
    if value < 7200.0:
        return f"{value / 60.0:.3g} min"
    if value < 48.0 * 3600.0:
        return f"{value / 3600.0:.3g} h"
    return f"{value / 86400.0:.3g} d"


def times(value: float) -> str:
    """A ratio, as a whole number where it is large."""
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.1f}"
