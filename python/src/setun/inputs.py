"""Prompts, tokens and conversations as people have them, as rows of the compiled part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

Prompt = Union[str, Sequence[int], "NDArray[np.integer[Any]]", None]
"""A text, or tokens. Whatever else tables have, as None and NaN, is a row with an error."""
Message = Mapping[str, Any]
"""``role`` and ``content``, as chat APIs have them."""
Conversation = Sequence[Message]

Row = Union[str, "list[int]", "tuple[str]"]
"""A text, tokens, or the reason why it is neither."""

MAX_TOKEN = 2**32 - 1


def prompt_rows(prompts: Prompt | Iterable[Prompt]) -> list[Row]:
    """Prompts as rows; one text, or the tokens of one, is a list of one."""
    if isinstance(prompts, str) or is_tokens(prompts):
        return [row(prompts)]
    return [row(prompt) for prompt in listed(prompts)]


def conversation_rows(conversations: Conversation | Iterable[Conversation]) -> list[Row]:
    """Conversations as rows of JSON; one is a list of one."""
    if is_conversation(conversations):
        return [conversation_row(conversations)]
    return [conversation_row(conversation) for conversation in listed(conversations)]


def row(prompt: Any) -> Row:
    """A text as it is, tokens as a list."""
    if isinstance(prompt, str):
        try:
            prompt.encode()
        except UnicodeEncodeError as error:
            return (f"the text is no UTF-8: {error}",)
        return str(prompt)
    if not isinstance(prompt, (list, tuple, np.ndarray)):
        return (f"the row is {prompt!r:.40}, expected a string or tokens",)
    try:
        tokens = [token_id(token) for token in prompt]
    except (TypeError, ValueError) as error:
        return (f"tokens: {error}",)
    return tokens


def token_id(token: Any) -> int:
    found = None if isinstance(token, (bool, np.bool_)) else index(token)
    if found is None or not 0 <= found <= MAX_TOKEN:
        raise ValueError(f"{token!r} is none, expected an integer of 0 or more")
    return found


def conversation_row(conversation: Any) -> Row:
    try:
        return to_json(list(conversation))
    except (TypeError, ValueError) as error:
        return (f"messages: {error}",)


def listed(rows: Any) -> list[Any]:
    """The rows of a list or a column; a table has several columns."""
    if isinstance(rows, (bytes, Mapping)) or hasattr(rows, "columns") or not isinstance(rows, Iterable):
        raise TypeError(f"found {type(rows).__name__}, expected a list or a column of prompts")
    return list(rows)


def is_tokens(prompt: Any) -> bool:
    if isinstance(prompt, np.ndarray):
        return np.issubdtype(prompt.dtype, np.integer) and prompt.ndim == 1
    return isinstance(prompt, (list, tuple)) and bool(prompt) and isinstance(prompt[0], (int, np.integer))


def is_conversation(prompt: Any) -> bool:
    return isinstance(prompt, (list, tuple, np.ndarray)) and len(prompt) > 0 and isinstance(prompt[0], Mapping)


def to_json(value: Any) -> str:
    """JSON, with scalars and arrays of NumPy as their values."""
    return json.dumps(value, allow_nan=False, default=plain)


def plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r} is no value of JSON")
