"""What compiling does to the process that it happens in: nothing that lasts."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator

import numba
import pytest
from numba.core import event

import figmn.kernels.compiler  # noqa: F401, which listens to compilations


class _Watch(event.Listener):
    """Notes whether garbage is collected, at the end of each compilation."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def on_start(self, started: event.Event) -> None:
        pass

    def on_end(self, ended: event.Event) -> None:
        self.seen.append(gc.isenabled())


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    yield
    gc.enable()


def compiled_as_ours(function: Callable[[float], float]) -> Callable[[float], float]:
    """A kernel that claims to be of this package, and is not cached."""
    function.__module__ = "figmn.kernels.made_up"
    return numba.njit(function)


def ending_with(call: Callable[[], object]) -> list[bool]:
    """Whether garbage is collected at the ends of compilations, innermost first."""
    watch = _Watch()
    event.register("numba:compile", watch)
    try:
        call()
    finally:
        event.unregister("numba:compile", watch)
    return watch.seen


def test_collection_rests_while_kernels_compile_and_goes_on_afterwards() -> None:
    inner = compiled_as_ours(lambda x: math.sqrt(x))
    outer = compiled_as_ours(lambda x: inner(x) + 1.0)
    # The package's own listener was told of the end before this one.
    assert ending_with(lambda: outer(4.0)) == [False, True]
    assert gc.isenabled()


def test_collection_that_a_user_has_disabled_stays_so() -> None:
    gc.disable()
    kernel = compiled_as_ours(lambda x: x + 2.0)
    assert ending_with(lambda: kernel(4.0)) == [False]
    assert not gc.isenabled()


def test_compiling_that_fails_leaves_collection_on() -> None:
    kernel = compiled_as_ours(lambda x: x.no_such_thing)
    with pytest.raises(numba.TypingError):
        kernel(4.0)
    assert gc.isenabled()


def test_functions_of_others_compile_as_ever() -> None:
    inner = numba.njit(lambda x: math.sqrt(x))
    outer = numba.njit(lambda x: inner(x) + 1.0)
    assert ending_with(lambda: outer(4.0)) == [True, True]


def test_a_function_of_no_module_compiles_as_ever() -> None:
    names: dict[str, Callable[[float], float]] = {}
    exec("def double(x):\n    return 2.0 * x", names)
    names["double"].__module__ = None  # type: ignore[assignment]
    assert ending_with(lambda: numba.njit(names["double"])(1.0)) == [True]
