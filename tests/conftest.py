"""Settings and fixtures for all tests."""

import os

import pytest

# Before SciPy is imported: else scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture(params=["plain", "lazy"], scope="module")
def held(request):
    """Hold components one way and then the other, whatever the number of variables."""
    from figmn.components import engine

    before = engine.LEAST_LAZY_FEATURES
    engine.LEAST_LAZY_FEATURES = 1 if request.param == "lazy" else 10**9
    yield request.param
    engine.LEAST_LAZY_FEATURES = before
