"""Settings and fixtures for all tests."""

import os

import pytest

# Before SciPy is imported: else scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture(params=["dense", "lowrank"], scope="module")
def held(request):
    """Hold components one way and then the other, whatever the number of variables."""
    from figmn.engines import choice

    before = choice.LEAST_BLOCK_FEATURES
    choice.LEAST_BLOCK_FEATURES = 1 if request.param == "lowrank" else 10**9
    yield request.param
    choice.LEAST_BLOCK_FEATURES = before
