"""The class ``LLM``: a model in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from setun._native import NativeEngine, exp
from setun.inputs import Conversation, Message, Prompt, conversation_rows, is_conversation, prompt_rows, row, to_json
from setun.results import Completion, Delta, RowError, Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

Errors = Literal["raise", "return"]
"""What a row that cannot be answered does: it ends the call once all rows have run, or has an ``error``."""

Row = TypeVar("Row")


class LLM:
    """A model in this process. Threads may share it; a fork may not use it.

    ``model`` is a path, the name of a model that was pulled (:func:`setun.pull`), or nothing for the
    small story model that comes along. Options of the engine are those of docs/configuration.md:
    ``threads``, ``backend``, ``context_length``, ``max_concurrent``, ``cache_type`` and others.
    ``pretokenizer`` names how a GGUF file's tokenizer splits text, where the file does not say so.

    Calls take lists, run their rows beside each other, and release Python's lock. A pickled LLM
    loads its model again.
    """

    def __init__(self, model: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._arguments = (None if model is None else os.fspath(model), options)
        self._native = NativeEngine(self._arguments[0], to_json(options))

    def generate(
        self,
        prompts: Prompt | Iterable[Prompt],
        *,
        keys: Iterable[Any] | None = None,
        errors: Errors = "raise",
        **options: Any,
    ) -> list[Completion]:
        """Continues each prompt; one prompt is a list of one.

        Options have the names of docs/options.md: ``max_tokens``, ``temperature``, ``top_p``,
        ``seed``, ``stop``, ``logprobs``; of ``json_schema``, ``json_object``, ``regex``, ``choice``,
        ``lark`` and ``gbnf`` one may be given.

        With ``keys``, one a row, each row has a seed of its own from ``seed`` and its key, as in
        ``setun batch run``: the texts are the same wherever and in whatever order rows run.
        """
        check_errors(errors)
        rows = self._native.generate(prompt_rows(prompts), to_json(options), texts(keys))
        return results(rows, errors, completion, completion_error)

    def chat(
        self,
        conversations: Conversation | Iterable[Conversation],
        *,
        keys: Iterable[Any] | None = None,
        errors: Errors = "raise",
        **options: Any,
    ) -> list[Completion]:
        """Answers each conversation, through the model's own chat template. Otherwise as :meth:`generate`."""
        check_errors(errors)
        rows = self._native.chat(conversation_rows(conversations), to_json(options), texts(keys))
        return results(rows, errors, completion, completion_error)

    def stream(self, prompt: Prompt | Conversation, **options: Any) -> Iterator[Delta]:
        """One text, or answer to a conversation, to be read while it is generated.

        Closing the iterator ends the generation.
        """
        if is_conversation(prompt):
            stream = self._native.stream_chat(to_json(prompt), to_json(options))
        else:
            stream = self._native.stream(row(prompt), to_json(options))
        return deltas(stream)

    def embed(
        self,
        texts: Prompt | Iterable[Prompt],
        *,
        pooling: Literal["last", "mean"] = "last",
        normalize: bool = True,
        errors: Errors = "raise",
    ) -> NDArray[np.float32]:
        """Texts as vectors, ``[texts, hidden]``, of length 1 with ``normalize``.

        With ``errors="return"`` a row without a vector is NaN.
        """
        check_errors(errors)
        rows = self._native.embed(prompt_rows(texts), pooling, normalize)
        nothing = np.empty(0, np.float32)
        vectors = results(rows, errors, lambda vector: vector, lambda reason: nothing)
        if not any(map(len, vectors)):  # how long would they be?
            return np.full((len(vectors), len(self._native.embed(["a"], pooling, normalize)[0])), np.nan, np.float32)
        missing = np.full(max(map(len, vectors)), np.nan, np.float32)
        return np.stack([vector if len(vector) else missing for vector in vectors])

    def score(
        self,
        prompts: Prompt | Iterable[Prompt],
        continuations: str | Iterable[str],
        *,
        errors: Errors = "raise",
    ) -> list[Score]:
        """How likely the model continues each prompt by its continuation.

        One prompt may have several continuations, and several prompts one. Of the tokens of both
        together those count that are not the prompt's own.
        """
        check_errors(errors)
        first, second = prompt_rows(prompts), prompt_rows(continuations)
        if len(first) != len(second) and 1 not in (len(first), len(second)):
            raise ValueError(f"{len(first)} prompts, {len(second)} continuations, expected as many, or one")
        count = max(len(first), len(second)) if first and second else 0
        spread = [rows * count if len(rows) == 1 else rows for rows in (first, second)]
        return results(self._native.score(*spread), errors, score, score_error)

    def score_texts(self, texts: Prompt | Iterable[Prompt], *, errors: Errors = "raise") -> list[Score]:
        """How likely the model finds each text, its first token given."""
        check_errors(errors)
        return results(self._native.score_texts(prompt_rows(texts)), errors, score, score_error)

    def perplexity(self, texts: Prompt | Iterable[Prompt], *, errors: Errors = "raise") -> NDArray[np.float64]:
        """The exponential of the negative mean log-probability of each text's tokens but the first."""
        scores = self.score_texts(texts, errors=errors)
        return np.array([exp(-score.mean_logprob) for score in scores], dtype=np.float64)

    def tokenize(self, text: str) -> NDArray[np.uint32]:
        """Tokens of a text, with special ones as the tokenizer adds them."""
        return self._native.tokenize(text)

    def detokenize(self, tokens: Iterable[int]) -> str:
        """The text of tokens."""
        return self._native.detokenize([int(token) for token in tokens])

    @property
    def model_name(self) -> str:
        return self._native.model_name

    @property
    def backend(self) -> str:
        """The device that runs, and its level: ``cpu avx512-vnni``."""
        return self._native.backend

    @property
    def context_length(self) -> int:
        """Tokens of a prompt and its text together, at most."""
        return self._native.context_length

    @property
    def vocab_size(self) -> int:
        return self._native.vocab_size

    @property
    def has_chat_template(self) -> bool:
        return self._native.has_chat_template

    def close(self) -> None:
        """Lets go of the model, whose memory is free when calls of other threads and streams have ended."""
        self._native.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., LLM], tuple[str | None, dict[str, Any]]]:
        return load, self._arguments

    def __repr__(self) -> str:
        model, options = self._arguments
        return f"LLM({', '.join([repr(model), *(f'{name}={value!r}' for name, value in options.items())])})"


def load(model: str | None, options: dict[str, Any]) -> LLM:
    return LLM(model, **options)


def deltas(stream: Any) -> Iterator[Delta]:
    with closing(stream):
        yield from map(Delta._make, stream)


def texts(keys: Iterable[Any] | None) -> list[str] | None:
    return None if keys is None else [str(key) for key in keys]


def results(rows: list[Any], errors: Errors, make: Callable[[Any], Row], failed: Callable[[str], Row]) -> list[Row]:
    """Rows as objects; a text is the reason why there is none."""
    if errors == "raise":
        for place, found in enumerate(rows):
            if isinstance(found, str):
                raise RowError(place, found)
    return [failed(found) if isinstance(found, str) else make(found) for found in rows]


def check_errors(errors: Errors) -> None:
    if errors not in ("raise", "return"):
        raise ValueError(f"errors: {errors!r}, expected 'raise' or 'return'")


def completion(row: tuple[Any, ...]) -> Completion:
    text, tokens, logprobs, finish_reason, prompt, generated, cached, seed, unfinished = row
    return Completion(text, finish_reason, prompt, generated, cached, seed, tokens, logprobs, None, unfinished)


def completion_error(reason: str) -> Completion:
    return Completion("", "error", 0, 0, 0, 0, np.empty(0, np.uint32), None, reason)


def score(row: tuple[Any, ...]) -> Score:
    logprobs, tokens = row
    return Score(tokens, logprobs)


def score_error(reason: str) -> Score:
    return Score(np.empty(0, np.uint32), np.empty(0, np.float64), reason)
