"""The statistics of the report, against scipy and the standard library."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from scipy import stats

from paper import published
from paper.datasets import NAMES
from paper.statistics import exponent, paired_t_test, spread


@pytest.mark.parametrize("count", [2, 10, 50])
def test_the_plain_test_is_that_of_scipy(count):
    rng = np.random.default_rng(count)
    first, second = rng.normal(80.0, 5.0, count), rng.normal(78.0, 6.0, count)
    ours, truth = paired_t_test(first, second), stats.ttest_rel(first, second)
    assert ours.statistic == pytest.approx(truth.statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(truth.pvalue, rel=1e-10)
    assert ours.difference == pytest.approx(first.mean() - second.mean(), rel=1e-12)
    assert ours.is_significant == (truth.pvalue < 0.05)


def test_overlap_widens_the_variance_of_the_mean():
    rng = np.random.default_rng(0)
    first, second = rng.normal(80.0, 5.0, 100), rng.normal(78.0, 5.0, 100)
    differences = first - second
    variance = (1.0 / 100 + 1.0 / 9) * statistics.variance(differences.tolist())
    statistic = statistics.fmean(differences.tolist()) / variance**0.5
    ours = paired_t_test(first, second, overlap=1.0 / 9)
    assert ours.statistic == pytest.approx(statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(2.0 * stats.t.sf(abs(statistic), 99), rel=1e-10)
    assert ours.p_value > paired_t_test(first, second).p_value


def test_a_test_needs_spread_to_be_uncertain():
    same = np.linspace(60.0, 90.0, 10)
    assert paired_t_test(same, same).p_value == 1.0
    assert not paired_t_test(same, same).is_significant
    shifted = paired_t_test(same - 0.1, same)
    assert shifted.p_value == 0.0
    assert shifted.statistic == -np.inf
    with pytest.raises(ValueError, match="two pairs"):
        paired_t_test([1.0], [2.0])


def test_spread_and_exponent():
    values = [3.0, 5.0, 4.0, 8.5]
    assert spread(values).mean == pytest.approx(statistics.fmean(values))
    assert spread(values).deviation == pytest.approx(statistics.stdev(values))
    assert spread([2.0]) == (2.0, 0.0)
    sizes = np.array([16.0, 32.0, 64.0, 128.0])
    times = 3e-9 * sizes**2.5 * np.array([1.1, 0.9, 1.0, 1.05])
    truth = stats.linregress(np.log(sizes), np.log(times)).slope
    assert exponent(sizes, times) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("model", published.ACCURACY)
def test_the_papers_averages_are_those_of_its_rows(model):
    accuracies = [published.ACCURACY[model][name].mean for name in NAMES]
    assert np.mean(accuracies) == pytest.approx(published.AVERAGE_ACCURACY[model], abs=0.051)
