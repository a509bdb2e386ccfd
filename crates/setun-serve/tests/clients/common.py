"""What the scripts share: arguments, drawn requests, the command's own answers, and drawn tools.

Each script is run as `SCRIPT BASE_URL MODEL`, with options that `--help` lists, and exits with another status than 0 on failure.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

WORDS = [
    "a",
    "cat",
    "dog",
    "tree",
    "Once upon a time",
    "the",
    "little",
    "girl",
    "said",
    "and",
    "sun",
    "ran",
    "été",
    ".",
]


@dataclass
class Context:
    """A server, the command beside it, and how much is drawn."""

    base_url: str
    model: str
    command: str
    folder: str | None
    draws: int
    calls: int
    random: random.Random

    @property
    def has_chat(self) -> bool:
        """The embedded model has no chat template; one in a folder has."""
        return self.folder is not None


@dataclass
class Draw:
    """A request: its text, and options by the names that OpenAI's API and vLLM have."""

    text: str
    options: dict[str, Any]

    def openai(self) -> dict[str, Any]:
        """The options as arguments of OpenAI's client, which does not know all of them."""
        others = ("top_k", "min_p", "repetition_penalty")
        known = {name: value for name, value in self.options.items() if name not in others}
        return {**known, "extra_body": {name: self.options[name] for name in others if name in self.options}}

    def ollama(self) -> dict[str, Any]:
        names = {"max_tokens": "num_predict", "repetition_penalty": "repeat_penalty"}
        return {names.get(name, name): value for name, value in self.options.items()}


def draw(context: Context) -> Draw:
    """A prompt, a seed and options that are drawn."""
    drawn = context.random
    options = {
        "max_tokens": drawn.randint(4, 24),
        "temperature": drawn.choice([0, round(drawn.uniform(0.2, 1.5), 2)]),
        "top_p": round(drawn.uniform(0.5, 1), 2),
        "top_k": drawn.randint(2, 60),
        "min_p": round(drawn.uniform(0, 0.1), 2),
        "repetition_penalty": round(drawn.uniform(1, 1.3), 2),
        "presence_penalty": round(drawn.uniform(0, 0.5), 2),
        "frequency_penalty": round(drawn.uniform(0, 0.5), 2),
        "seed": drawn.randrange(2**31),
    }
    return Draw(" ".join(drawn.choices(WORDS, k=drawn.randint(1, 12))), options)


def by_command(context: Context, request: Draw, arguments: list[str]) -> str:
    """What a subcommand prints for the options of a request."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in request.options.items()]
    model = ["--model", context.folder] if context.folder else []
    subcommand, *rest = arguments
    command = [context.command, subcommand, *model, *flags, *rest]
    # As bytes: a carriage return of a text stays one.
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8")


def run(context: Context, request: Draw) -> tuple[str, str]:
    """The text of `setun run`, and why it ended."""
    printed = by_command(context, request, ["run", "--json", "--", request.text])
    events = [json.loads(line) for line in printed.split("\n") if line]
    text = "".join(event["text"] for event in events if event["type"] == "text")
    return text, events[-1]["finish_reason"]


def chat(context: Context, request: Draw, messages: list[dict[str, str]]) -> str:
    """The text of `setun chat`."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(messages, file)
        file.flush()
        printed = by_command(context, request, ["chat", "--messages", file.name])
    return printed.removesuffix("\n")


def drawn_thoughts(context: Context) -> Iterator[tuple[Draw, dict[str, str], dict[str, str], int, tuple[str, str]]]:
    """Requests with their messages and a budget of reasoning, and reasoning and text of `setun chat`."""
    for budget in (0, 1, 5, 50):
        request = draw(context)
        request.options["max_tokens"] = 70
        messages = conversation(request)
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in request.options.items()]
        model = ["--model", context.folder] if context.folder else []
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(messages, file)
            file.flush()
            thinking = ["--thinking=true", f"--max-thinking-tokens={budget}", "--messages", file.name]
            command = [context.command, "chat", *model, *flags, *thinking]
            done = subprocess.run(command, check=True, capture_output=True)
        text, reasoning = (printed.decode("utf-8").removesuffix("\n") for printed in (done.stdout, done.stderr))
        assert budget > 0 or reasoning == "", (request, reasoning)
        system, user = messages
        yield request, system, user, budget, (reasoning, text)


def conversation(request: Draw) -> list[dict[str, str]]:
    """The text of a request as a user's message."""
    return [{"role": "system", "content": "You are a cat."}, {"role": "user", "content": request.text}]


class Strict(BaseModel):
    """Arguments without fields of their own choice."""

    model_config = ConfigDict(extra="forbid", strict=True)


def draw_arguments(context: Context, name: str) -> type[BaseModel]:
    """The arguments of a tool: some fields of drawn types, each with an end."""
    drawn = context.random
    kinds: list[Callable[[], Any]] = [
        lambda: Literal["Oslo", "Rome", 'a "b"'],
        lambda: bool,
        lambda: Annotated[int, Field(ge=-drawn.randint(0, 50), le=drawn.randint(0, 5000))],
        lambda: Annotated[str, Field(max_length=drawn.randint(1, 12))],
        lambda: Annotated[list[Literal["x", "y"]], Field(max_length=3)],
        lambda: Annotated[list[bool], Field(min_length=1, max_length=2)],
    ]
    fields = {f"f{index}": (drawn.choice(kinds)(), ...) for index in range(drawn.randint(1, 3))}
    return create_model(name, __base__=Strict, **fields)


@dataclass
class Tool:
    """A function that the model may call."""

    name: str
    arguments: type[BaseModel]

    def openai(self) -> dict[str, Any]:
        """The tool as the APIs of OpenAI and Ollama have it."""
        return {"type": "function", "function": {"name": self.name, "parameters": self.arguments.model_json_schema()}}


def draw_tools(context: Context) -> dict[str, Tool]:
    """One tool or two, by their names."""
    names = ["weather", "look_up"][: context.random.randint(1, 2)]
    return {name: Tool(name, draw_arguments(context, name)) for name in names}


def drawn_chats(context: Context) -> Iterator[tuple[Draw, dict[str, str], dict[str, str], str]]:
    """Requests with their system and user messages, and the text of `setun chat`."""
    for _ in range(context.draws):
        request = draw(context)
        system, user = conversation(request)
        yield request, system, user, chat(context, request, [system, user])


def drawn_calls(context: Context) -> Iterator[tuple[dict[str, Tool], int, bool]]:
    """Tools to call, a seed, and whether the answer is streamed."""
    for index in range(context.calls):
        yield draw_tools(context), context.random.randrange(2**31), index % 2 == 1


@contextmanager
def served(command: str, *options: str | Path) -> Iterator[tuple[str, str]]:
    """Name and URL of a server of its own. Its end is without an error."""
    serve = [command, "serve", "--port", "0", *options]
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        said = [""]
        try:
            while not said[-1].startswith("serving "):
                said.append(server.stderr.readline())
                assert said[-1], said
            model, url = said[-1].split()[1::2]
            yield model, url
        finally:
            server.send_signal(signal.SIGTERM)
        server.stderr.read()
    assert server.returncode == 0, server.returncode


def main(tests: list[Callable[[Context], None]]) -> None:
    """Runs tests one after the other, those of chats on servers whose model has a template, and counts them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url", help="without the path of an API")
    parser.add_argument("model")
    parser.add_argument("--command", required=True, help="path of `setun`")
    parser.add_argument("--folder", help="the model's folder; without it the embedded model is served")
    parser.add_argument("--draws", type=int, default=3, help="requests that are compared with the command")
    parser.add_argument("--calls", type=int, default=6, help="calls of tools")
    parser.add_argument("--seed", type=int, default=os.environ.get("SETUN_SEED", "0"), help="what draws begin with")
    given = parser.parse_args()
    script = Path(inspect.stack()[1].filename).name
    print(f"{script}: {given.draws} draws, {given.calls} calls, --seed {given.seed}", flush=True)
    passed = 0
    for test in tests:
        context = Context(
            given.base_url, given.model, given.command, given.folder, given.draws, given.calls, random.Random(given.seed)
        )
        if getattr(test, "needs_chat", False) and not context.has_chat:
            continue
        test(context)
        passed += 1
    print(f"# pass {passed}", flush=True)


def of_chats(test: Callable[[Context], None]) -> Callable[[Context], None]:
    """Marks a test of conversations."""

    @functools.wraps(test)
    def marked(context: Context) -> None:
        test(context)

    marked.needs_chat = True  # type: ignore[attr-defined]
    return marked
