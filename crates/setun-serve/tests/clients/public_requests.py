"""Requests as agents and libraries of schemas send them, by `requests/*.json`, and what their answers have to be.

Each API's script brings them into its own form. A request has these fields, whose names are OpenAI's where they are not told here:

- `messages`; arguments of calls are text, null or absent
- `tools`: functions with name, description, parameters and `strict`, or the name of the file that has them
- `others`: tools of an API that are no functions
- `choice`: auto, none, required, a tool by `name`, or one `among` some; `parallel`
- `format`: `json`, or name, schema and `strict`
- `options`, `max_tokens`, and `more`: further fields of an API
- `free`: keywords that no grammar follows, so that an answer need not
- `is_cut`: whether the answer does not fit in `max_tokens`, or `maybe`: parts of it have no end that is likely
- `refused`: a word of the refusal, which names the field of the tool's schema
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema_rs

from common import Context

FOLDER = Path(__file__).parent / "requests"

# Requests at a time: the server batches them.
WORKERS = 4

# A full check.
IS_FULL = "SETUN_FULL" in os.environ

# Calls of tools that come with one round of requests.
CALLS = 6


@dataclass
class Answer:
    """What a client has read of an answer."""

    text: str
    calls: list[tuple[str, str]] = field(default_factory=list)
    is_cut: bool = False
    warnings: str = ""


class Refused(Exception):
    """A refusal with its status and its words, which name the field."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


@dataclass
class Request:
    """A request of a file."""

    name: str
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.fields.get(name)

    @property
    def limit(self) -> Any:
        return self.fields.get("max_tokens", 240)

    def more(self, api: str) -> dict[str, Any]:
        """Fields of one API alone."""
        return self.fields.get("more", {}).get(api, {})

    def others(self, api: str) -> list[dict[str, Any]]:
        """Tools of one API that are no functions."""
        return self.fields.get("others", {}).get(api, [])


def read() -> list[Request]:
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    for fields in files.values():
        if isinstance(fields.get("tools"), str):
            fields["tools"] = files[fields["tools"]]["tools"]
    return [Request(name, fields) for name, fields in files.items()]


def ends_soon(context: Context) -> dict[str, float]:
    """A bias for the tokens that end strings, lists and objects, which a model of random weights seldom writes."""
    assert context.folder
    tokenizer = json.loads((Path(context.folder) / "tokenizer.json").read_text(encoding="utf-8"))
    ends = ('"', '▁"', "]")
    return {str(token): 5.0 for text, token in tokenizer["model"]["vocab"].items() if text in ends}


Send = Callable[[Request, int, bool], Answer]


def check(context: Context, send: Send, schema_field: str) -> None:
    """Sends each request: in a full check with drawn seeds, whole and streamed; else with fixed ones, every second one streamed.

    `schema_field` is what a refusal calls the schema of a tool.
    """
    drawn = context.random if IS_FULL else random.Random(0)
    requests = read()
    for request in requests:
        request.fields["options"] = {"logit_bias": ends_soon(context), **(request.options or {})}
    assert len(requests) >= 30, len(requests)
    with ThreadPoolExecutor(WORKERS) as workers:
        for _ in range(max(context.calls // CALLS, 1)):
            seeds = [drawn.randrange(2**31) for _ in requests]
            ways = [(False, True) if IS_FULL else (index % 2 == 1,) for index in range(len(requests))]
            list(workers.map(lambda *each: check_one(*each, send, schema_field), requests, seeds, ways))


def check_one(request: Request, seed: int, ways: tuple[bool, ...], send: Send, schema_field: str) -> None:
    try:
        answer, *others = (send(request, seed, is_streamed) for is_streamed in ways)
    except Refused as refused:
        assert request.refused, (request.name, refused)
        words = str(refused)
        assert refused.status == 400 and schema_field in words and request.refused in words, (request.name, words)
        return
    assert not request.refused, (request.name, "was not refused")
    assert all(other == answer for other in others), (request.name, seed, others, answer)
    try:
        check_answer(request, answer)
    except Exception as error:
        raise AssertionError(f"{request.name}, seed {seed}: {answer}") from error


def check_answer(request: Request, answer: Answer) -> None:
    """Calls are of the tools that are offered, and valid; a text has its format."""
    assert answer.is_cut or request.is_cut in (None, "maybe")
    if request.choice == "required" or isinstance(request.choice, dict):
        assert answer.calls or answer.is_cut
        assert not answer.is_cut or request.is_cut, "a call that does not end"
    allowed = {tool["name"]: tool for tool in request.tools or []}
    if isinstance(request.choice, dict):
        names = [request.choice.get("name"), *request.choice.get("among", [])]
        allowed = {name: tool for name, tool in allowed.items() if name in names}
    for index, (name, arguments) in enumerate(answer.calls):
        if answer.is_cut and index + 1 == len(answer.calls):
            break
        check_document(arguments, allowed[name].get("parameters") or {"properties": {}}, request.free)
    assert request.choice != "none" or not answer.calls
    assert request.parallel is not False or len(answer.calls) <= 1
    if request.format and not answer.calls:
        assert not answer.is_cut or request.format == "json", "a text that does not end"
        check_document(answer.text, {"type": "object"} if request.format == "json" else request.format["schema"], [])


def check_document(text: str, schema: dict[str, Any], free: list[str] | None) -> None:
    document = json.loads(text)
    assert isinstance(document, dict), document
    draft = {} if "$schema" in schema else {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    validator = jsonschema_rs.validator_for(draft | without(schema, free or []), validate_formats=True)
    errors = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(document)]
    assert not errors, errors


def without(schema: Any, keywords: list[str]) -> Any:
    """A schema without some keywords."""
    if isinstance(schema, list):
        return [without(one, keywords) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without(value, keywords) for name, value in schema.items() if name not in keywords}
