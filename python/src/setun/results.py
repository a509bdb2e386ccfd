"""Results of rows, and their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setun._native import SetunError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RowError(SetunError):
    """A row cannot be answered, for a reason that lies in the row; others may be."""

    row: int
    """Its place in the list."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row, self.reason, self.code = row, reason, "bad-row"

    def __reduce__(self) -> tuple[type[RowError], tuple[int, str]]:
        return RowError, (self.row, self.reason)


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """A text that a model has written."""

    text: str
    """The text, without its prompt."""
    finish_reason: str
    """``stop``, ``length``, ``tool_calls``, ``timeout``, or ``error``."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Tokens of the prompt that the prefix cache had."""
    seed: int
    """The seed that gives this text again."""
    tokens: NDArray[np.uint32]
    """The tokens behind the text, an end token included."""
    logprobs: NDArray[np.float64] | None = None
    """Their natural log-probabilities, with ``logprobs=True``."""
    error: str | None = None
    """Why there is no text, with ``errors="return"``."""
    unfinished: bool = False
    """Whether the text ended before its constraint was complete: a JSON text is cut, for one."""


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How likely a model finds a text."""

    tokens: NDArray[np.uint32]
    """The tokens that count."""
    logprobs: NDArray[np.float64]
    """The natural log-probability of each, after all before it."""
    error: str | None = None
    """Why there is none, with ``errors="return"``."""

    @property
    def logprob(self) -> float:
        """The sum, in the order of the tokens; NaN where there is none."""
        if not len(self.logprobs):
            return float("nan")
        total = 0.0
        for logprob in self.logprobs.tolist():  # `sum` compensates from Python 3.12 on
            total += logprob
        return total

    @property
    def mean_logprob(self) -> float:
        """The mean, which does not prefer short texts."""
        return self.logprob / max(len(self.logprobs), 1)


class Delta(NamedTuple):
    """A token of a stream, and the text that it completes."""

    text: str
    token: int
    logprob: float | None


COLUMNS = ("text", "finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "error")


def columns(completions: Iterable[Completion]) -> dict[str, NDArray[Any]]:
    """Columns of a table, by the names of docs/sql.md, as arrays of NumPy.

    Strings and errors are arrays of objects, counts of int64.
    """
    rows = list(completions)
    kinds = {field.name: np.int64 if field.type == "int" else object for field in fields(Completion)}
    return {
        name: np.array([getattr(row, name) for row in rows], dtype=kinds[name]) for name in COLUMNS
    }
