"""The one place for compiler flags, and the limits all kernels share."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., object])

LARGEST: Final = 1e153
"""Largest magnitude of a value or a weight: its square must be a float64."""

SMALLEST_VARIANCE: Final = 1e-306
"""No variance falls below this, so that its inverse is a float64."""

SMALLEST_MASS: Final = 1e-200
"""No mass fades below this."""

LARGEST_DISTANCE: Final = 1e300
"""Squared distances are capped here, so that differences of them are finite."""

LOG_ZERO: Final = 746.0
"""``exp`` of less than minus this is zero."""

LOG_LOST: Final = 37.0
"""``exp`` of minus this is lost when added to one."""

LOG_NOTHING: Final = 45.0
"""``exp`` of minus this is lost when a thousand of them are added to one."""

SURELY: Final = 1.0 - 1e-10
"""Part of a bound on squared distances that rounding leaves of it in any case."""

UNEXPLAINED: Final = 64 * float(np.finfo(np.float64).eps)
"""Least share of a variable's variance that other variables leave unexplained.

Below it, assembling the covariance matrix would round to an indefinite one.
"""

# Sums may be regrouped, which lets the compiler vectorise inner products, but
# NaN and infinity keep their meaning: the kernels test for them.
_FLAGS: dict[str, Any] = {
    "cache": True,
    "no_rewrites": True,  # of array expressions, of which there are none
    "nogil": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
# What makes no arrays need not count references to them. Each call, and each field of
# a tuple that is read, would else cost more than the arithmetic on a row of few variables.
_UNCOUNTED: dict[str, Any] = {**_FLAGS, "_nrt": False}
_INTERNAL: dict[str, Any] = {**_UNCOUNTED, "no_cpython_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile on first call, cache on disk, release the interpreter lock."""
    return cast(Function, numba.njit(**_FLAGS)(function))


def uncounted(function: Function) -> Function:
    """The same for a function that makes no arrays, and calls none that does."""
    return cast(Function, numba.njit(**_UNCOUNTED)(function))


def compiled_once(signature: str) -> Callable[[Function], Function]:
    """Compile at once, for arrays of any layout alike."""

    def decorate(function: Function) -> Function:
        return cast(Function, numba.njit(signature, **_FLAGS)(function))

    return decorate


def internal(function: Function) -> Function:
    """Compile for other compiled functions alone, without a way in from Python.

    That saves a good part of the time that compiling a small function takes. It makes
    no arrays.
    """
    return cast(Function, numba.njit(**_INTERNAL)(function))


def compensated(function: Function) -> Function:
    """The same as written: rounding errors that are carried along must not be optimised away.

    It is merged into its callers, once both have been compiled with flags of their own.
    """
    flags = {**_INTERNAL, "fastmath": {"contract"}, "forceinline": True}
    return cast(Function, numba.njit(**flags)(function))


def inlined(function: Function) -> Function:
    """Compile into the caller: a call costs more than what these do for few variables."""
    return cast(Function, numba.njit(inline="always", **_INTERNAL)(function))


def interpreted(function: Function) -> Function:
    """The Python function that was compiled, for a single call from Python."""
    return cast(Function, function.py_func)  # type: ignore[attr-defined]


class _WithoutCollection(event.Listener):
    """Automatic garbage collection rests while a kernel of this package is compiled.

    Compiling makes millions of objects and little garbage, so that a tenth of the time
    would go into looking for some: all the more, the more else a process has in memory.
    Afterwards all is as before. Numba compiles one function at a time, under a lock.
    """

    def __init__(self) -> None:
        self._depth = 0  # kernels compile the kernels that they call
        self._was_enabled = False

    def on_start(self, started: event.Event) -> None:
        """A compilation begins."""
        if _is_ours(started):
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, ended: event.Event) -> None:
        """It ends, be it by an error."""
        if _is_ours(ended):
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()


def _is_ours(compilation: event.Event) -> bool:
    """Whether a kernel of this package is compiled, and not anything else in the process."""
    function = getattr(compilation.data["dispatcher"], "py_func", None)
    module = getattr(function, "__module__", None) or ""  # what was made by exec has none
    return bool(module.partition(".")[0] == __name__.partition(".")[0])


event.register("numba:compile", _WithoutCollection())  # type: ignore[no-untyped-call]
