"""The phase in which rows are held back, until there are enough to begin with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from figmn._typing import AnyArray
from figmn.stream.row_buffer import RowBuffer


class Learns(Protocol):
    """What rows lead to: something that can learn further ones."""

    @property
    def learn(self) -> Callable[..., Any]:
        """Learn rows, and what comes with them."""
        ...


Model = TypeVar("Model", bound=Learns)


class WarmUp(ABC, Generic[Model]):
    """Rows held back, and the model that they lead to so far.

    Questions see that model: it is made when first asked for, learns further rows as they
    come, and is made anew from time to time. Which rows it is made from depends on how
    many there are, and on nothing else, so answers do not depend on when one asks.

    Parameters
    ----------
    buffer : RowBuffer
    """

    def __init__(self, buffer: RowBuffer) -> None:
        self.buffer = buffer
        self._model: Model | None = None

    @abstractmethod
    def n_needed(self) -> int:
        """How many rows end the warm-up."""

    @abstractmethod
    def step(self, n_rows: int) -> Any:
        """What a model of so many rows is made from: anew whenever it changes."""

    @abstractmethod
    def begin(self, buffer: RowBuffer, *, final: bool) -> Model:
        """Make a model of rows; ``final`` if no further rows are known to come."""

    def model(self) -> Model:
        """What the rows so far lead to."""
        if self._model is None:
            self._model = self.begin(self.buffer, final=True)
        return self._model

    def add(self, *arrays: AnyArray) -> Model | None:
        """Hold rows back; the model to go on with, if the warm-up ends with them."""
        buffer, before = self.buffer.with_more(*arrays), len(self.buffer)
        if len(buffer) >= self.n_needed():
            first, rest = buffer.split(self.n_needed())
            begun = self.begin(first, final=False)
            begun.learn(*rest.arrays)
            return begun
        model, self._model = self._model, None
        self.buffer = buffer
        if model is not None and self.step(len(buffer)) == self.step(before):
            _, new = buffer.split(before)
            model.learn(*new.arrays)
            self._model = model
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}
