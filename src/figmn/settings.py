"""Every setting once: its name, default, range and description.

To add a setting to all models, add a field to :class:`SharedSettings`: the mixture and the
estimators take it, check it, show it in their signatures and describe it in their
docstrings. What it does to learning is for :mod:`figmn.stream.settings_to_rule` to say.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from figmn._typing import ArrayLike
from figmn.kernels.compiler import LARGEST
from figmn.validation import check_count, check_number

_WARMUP_FOR_SCALE, _WARMUP_FOR_START = 100, 2048

Check = Callable[[Any, str], Any]
Arguments = ParamSpec("Arguments")
Instance = TypeVar("Instance")
Collected = TypeVar("Collected")


def _number(low: float, high: float = LARGEST, *, open_low: bool = False) -> Check:
    return lambda value, name: check_number(value, name, low, high, open_low=open_low)


def _count(low: int) -> Check:
    return lambda value, name: check_count(value, name, low)


def _or_auto(check: Check) -> Check:
    return lambda value, name: value if is_auto(value) else check(value, name)


def _or_none(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


def _one_of(*allowed: str) -> Check:
    def check(value: Any, name: str) -> str:
        # What is not text, such as an array, need not be comparable with it.
        if not (isinstance(value, str) and value in allowed):
            choices = " or ".join(map(repr, allowed))
            raise ValueError(f"{name} must be {choices}, not {value!r}.")
        return value

    return check


def is_auto(value: object) -> bool:
    """Whether a setting is left to the mixture."""
    return isinstance(value, str) and value == "auto"


def setting(default: Any, kind: str, description: str, check: Check | None = None) -> Any:
    """A field of a dataclass that is a setting."""
    metadata = {"kind": kind, "description": description, "check": check}
    return field(default=default, metadata=metadata)


@dataclass(kw_only=True, eq=False, repr=False)
class SharedSettings:
    """Settings that the mixture and all estimators take."""

    delta: float | str = setting(
        "auto",
        'float or "auto"',
        """Width of a new component, in standard deviations of the columns. If only
        ``beta`` is given, 1.""",
        _or_auto(_number(0.0, open_low=True)),
    )
    beta: float | str = setting(
        "auto",
        'float or "auto"',
        """A row is novel, and starts a component, if its tail probability under every
        component is below this. With 0 there is one component for ever. If only
        ``delta`` is given, 0.1. With both left to themselves the model starts from EM
        on its first 2048 rows, which chooses the number of components, and needs no
        tuning.""",
        _or_auto(_number(0.0, 1.0)),
    )
    max_components: int | None = setting(
        None,
        "int or None",
        """Hard bound on the number of components. At the bound a novel row updates the
        existing components by their responsibilities, like any other row.""",
        _or_none(_count(1)),
    )
    prune_age: int = setting(
        0,
        "int",
        """A component that has lived through more updates than this, with a mass below
        ``prune_mass``, is removed, unless it is the heaviest.""",
        _count(0),
    )
    prune_mass: float = setting(
        0.0,
        "float",
        """See ``prune_age``. With a mass of 0 nothing is removed.""",
        _number(0.0),
    )
    half_life: float | None = setting(
        None,
        "float or None",
        """For streams that drift: after so many rows a row counts half, after twice as
        many a quarter. A component is removed when less than half a row is left of
        it. With None nothing is forgotten.""",
        _or_none(_number(0.0, open_low=True)),
    )


@dataclass(kw_only=True, repr=False)
class Settings(SharedSettings):
    """All settings of a mixture of any variables, checked and then fixed."""

    update: str = setting(
        "exact",
        '{"exact", "paper"}',
        """The covariance update: moment-exact, or as printed in the paper (and exact
        where that would lose positive definiteness). A row with missing entries
        always takes the exact one.""",
        _one_of("exact", "paper"),
    )
    warmup: int | None = setting(
        None,
        "int or None",
        """Rows that are held back at first, though every query already counts them:
        2048 to start from EM, and else 100, if the scale is not given, to estimate
        it.""",
        _or_none(_count(1)),
    )
    shrinkage: float | None = setting(
        None,
        "float or None",
        """How many rows the pooled covariance counts for in each component, where the
        mixture starts from EM. With None held-out rows decide between 0, 1, 10, 100,
        1000 and one covariance for all components.""",
        _or_none(_number(0.0)),
    )
    parsimony: float | None = setting(
        None,
        "float or None",
        """How many standard errors, in the likelihood of held-out rows, fewer components
        may cost where the mixture starts from EM. With None 1, or 0.5 where more rows
        are to come; 0 is for predictions, where components cost nothing but time.""",
        _or_none(_number(0.0)),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            check = each.metadata["check"]
            if check is not None:
                object.__setattr__(self, each.name, check(getattr(self, each.name), each.name))
        object.__setattr__(self, "_fixed", True)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_fixed" in self.__dict__:
            raise AttributeError(f"{name} cannot be set here: call reconfigure({name}=...).")
        object.__setattr__(self, name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes

    def changed(self, changes: dict[str, Any]) -> Self:
        """The settings with some of them changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Names and values."""
        return {each.name: getattr(self, each.name) for each in fields(Settings)}

    @property
    def starts_from_batch(self) -> bool:
        """Whether a mixture fits its first rows by EM, and goes on from there."""
        return is_auto(self.delta) and is_auto(self.beta) and self.update == "exact"

    @property
    def is_for_predictions(self) -> bool:
        """Whether components are chosen to predict, at any number of them."""
        return self.starts_from_batch and self.parsimony == 0.0

    @property
    def warmup_rows(self) -> int:
        """How many rows are held back before learning begins."""
        if self.warmup is not None:
            return self.warmup
        return _WARMUP_FOR_START if self.starts_from_batch else _WARMUP_FOR_SCALE

    @property
    def width(self) -> float:
        """Delta as a number."""
        return 1.0 if isinstance(self.delta, str) else self.delta

    @property
    def retention(self) -> float:
        """What a row of weight one leaves of the masses before it."""
        return 1.0 if self.half_life is None else float(2.0 ** (-1.0 / self.half_life))


@dataclass(kw_only=True, repr=False)
class MixtureArguments(Settings):
    """What a mixture of given variables takes beside their number."""

    scale: ArrayLike | None = setting(
        None,
        "array-like of shape (D,), float or None",
        """The columns' standard deviations. With None they are estimated as the stream
        runs.""",
    )
    center: ArrayLike | None = setting(
        None,
        "array-like of shape (D,) or None",
        """Column means, to stand in for what is missing in a first row.""",
    )

    def settings(self) -> Settings:
        """Those for mixtures of any variables."""
        return Settings(**self.as_dict())


def described(settings: type) -> str:
    """The parameters section of a docstring for the settings of a class."""
    parts = []
    for each in fields(settings):
        if "description" in each.metadata:
            default = f'"{each.default}"' if isinstance(each.default, str) else each.default
            parts.append(f"{each.name} : {each.metadata['kind']}, default={default}")
            parts.append(f"        {each.metadata['description']}")
    return "\n    ".join(parts).replace("\n            ", "\n        ")


def takes(
    collect: Callable[Arguments, Collected],
) -> Callable[
    [Callable[[Instance, int, Collected], None]],
    Callable[Concatenate[Instance, int, Arguments], None],
]:
    """Let a constructor take the arguments of a settings class, which it is handed in one.

    They show in its signature, to people, to ``help`` and to type checkers.
    """
    shown = inspect.signature(collect).parameters.values()

    def decorate(
        constructor: Callable[[Instance, int, Collected], None],
    ) -> Callable[Concatenate[Instance, int, Arguments], None]:
        @functools.wraps(constructor)
        def construct(
            self: Instance, n_features: int, *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> None:
            constructor(self, n_features, collect(*args, **kwargs))

        own = list(inspect.signature(constructor).parameters.values())[:-1]
        construct.__signature__ = inspect.Signature([*own, *shown])  # type: ignore[attr-defined]
        return construct  # type: ignore[return-value]

    return decorate


SETTINGS: Final = tuple(each.name for each in fields(SharedSettings))
"""Names of the settings that all models share."""
