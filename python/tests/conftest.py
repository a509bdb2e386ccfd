"""What the tests share: the command, models and drawn requests.

`SETUN_COMMAND` names the command to compare with, `SETUN_CHAT_MODEL` a folder whose model has a chat template.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import setun

COMMAND = os.environ["SETUN_COMMAND"]
CHAT_MODEL = os.environ["SETUN_CHAT_MODEL"]
PROMPTS = ["Once upon a time", "The cat sat", "One day, a little bird", "Tom had a red ball", "Zoë läuft 🦊"]


def by_command(*arguments: str) -> list[dict[str, Any]]:
    """The lines of JSON that a subcommand prints."""
    printed = subprocess.run([COMMAND, *arguments], check=True, capture_output=True).stdout.decode()
    return [json.loads(line) for line in printed.split("\n") if line]


def run_by_command(prompt: str, **options: Any) -> tuple[str, list[int], str]:
    """Text, tokens and finish reason of `setun run`."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    *texts, done = by_command("run", "--json", *flags, "--", prompt)
    texts = [event for event in texts if event["type"] == "text"]
    return "".join(event["text"] for event in texts), [event["token"] for event in texts], done["finish_reason"]


@pytest.fixture(scope="session")
def llm() -> Iterator[setun.LLM]:
    with setun.LLM(threads=2) as llm:
        yield llm


@pytest.fixture(scope="session")
def chat_llm() -> Iterator[setun.LLM]:
    with setun.LLM(CHAT_MODEL, threads=1) as llm:
        yield llm


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers from `SETUN_SEED`, which is 0 if it is not set. A failed test shows it."""
    seed = int(os.environ.get("SETUN_SEED", "0"))
    request.node.user_properties.append(("seed", seed))
    print(f"SETUN_SEED={seed}")
    return random.Random(seed)


def draw_options(drawn: random.Random) -> dict[str, Any]:
    """Options of a text, some of them left out."""
    options: dict[str, Any] = {"max_tokens": drawn.randint(1, 24), "seed": drawn.randrange(2**53)}
    optional = {
        "temperature": drawn.choice([0, 0.5, 1, 1.5]),
        "top_p": drawn.choice([0.3, 0.9, 1]),
        "top_k": drawn.randint(1, 50),
        "min_p": drawn.choice([0.01, 0.2]),
        "repetition_penalty": drawn.choice([1.1, 1.5]),
    }
    return options | {name: value for name, value in optional.items() if drawn.random() < 0.5}
