"""Settings for all tests."""

import os

# Before SciPy is imported: else scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
