"""Log-likelihoods and perplexities that lm-evaluation-harness gets by its client `local-completions`.

Run as `lm_eval_client.py BASE_URL MODEL`. The model has recorded logits, and the server's KV cache has the type `f32`, as theirs had.
The other models with recorded logits have servers of their own, and tokenizers whose tokens are words.
The harness is here without what reads data sets: the requests are made as its tasks make them, and sent by its own client.
"""

from __future__ import annotations

import json
import math
import struct
import subprocess
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import words
from common import Context, main, served
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model

NAMES = ("bos", "dog", "once")

# Where the other models with recorded logits are, and how many there are at least.
FOLDERS, MODELS = ("golden/*/*", "families/*"), 15

# Logits agree to 1e-4, and to 0.6 where an int8 code of transformers lies beyond a tie (`tests/fixtures/README.md`).
# A logarithm of a probability agrees to twice as much.
STRICT, FLIPPED = 2e-4, 1.2

BEGIN = "<s>"

# Tokens between the beginnings of a text after which its rest is scored.
STRIDE = 3


@dataclass
class Golden:
    """Tokens of a text, and recorded logits after some of them by their positions."""

    ids: list[int]
    rows: dict[int, array[float]]
    tolerance: float = STRICT

    def score(self, place: int) -> tuple[float, bool]:
        """The log-probability of a token, and whether it is the best."""
        row, best = self.rows[place - 1], max(self.rows[place - 1])
        total = best + math.log(math.fsum(math.exp(one - best) for one in row))
        return row[self.ids[place]] - total, row[self.ids[place]] == best


@dataclass
class Part:
    """Some tokens of a text as a continuation of those before."""

    golden: Golden
    start: int
    end: int
    context: str
    continuation: str


class Tensors:
    """A file of safetensors."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        self.header, self.data = json.loads(content[8 : 8 + length]), content[8 + length :]

    def read(self, name: str) -> array[Any]:
        start, end = self.header[name]["data_offsets"]
        return array({"I32": "i", "F32": "f"}[self.header[name]["dtype"]], self.data[start:end])

    def golden(self, ids: str, logits: str, positions: str | None = None) -> Golden:
        values, (count, size) = self.read(logits), self.header[logits]["shape"]
        rows = [values[row * size : (row + 1) * size] for row in range(count)]
        places = self.read(positions) if positions else range(count)
        return Golden(list(self.read(ids)), dict(zip(places, rows, strict=True)))


def goldens(folder: Path) -> Iterator[Golden]:
    """The texts of a model that has no tokenizer, each with the best token after it."""
    tensors, facts = Tensors(folder / "golden.safetensors"), folder / "golden.json"
    if facts.exists():
        found = []
        for name, fact in json.loads(facts.read_text(encoding="utf-8"))["prompts"].items():
            one = tensors.golden(f"{name}.ids", f"{name}.logits_f32", f"{name}.logit_positions")
            one.tolerance = FLIPPED if fact["int8_differ_hf32_vs_f64"] else STRICT
            found.append(one)
    else:
        found = [tensors.golden("ids", "logits")]
    for one in found:
        row = one.rows[len(one.ids) - 1]
        one.ids.append(row.index(max(row)))
        yield one


def client_of(model: str, url: str) -> Any:
    client = get_model("local-completions")
    return client(base_url=f"{url}/v1/completions", model=model, tokenizer_backend="remote", max_length=512)


def ask(client: Any, kind: str, requests: list[tuple[str, ...]]) -> list[Any]:
    instances = [Instance(kind, {}, request, place) for place, request in enumerate(requests)]
    return getattr(client, kind)(instances, disable_tqdm=True)


def parts(client: Any, one: Golden, spelled: Callable[[Sequence[int]], str]) -> Iterator[Part]:
    """Runs of tokens whose logits are known, after what is before, and their rests after some beginnings."""
    assert client.tokenizer.encode(spelled(one.ids)) == one.ids
    known = [place for place in range(1, len(one.ids)) if place - 1 in one.rows]
    while known:
        first, end = known[0], known[0] + 1
        while end in known:
            end += 1
        for start in range(first, end, STRIDE):
            begun = spelled(one.ids[:start])
            rest = spelled(one.ids[:end])[len(begun) :]
            # The harness itself puts the first token before a text without a context.
            yield Part(one, start, end, "" if one.ids[:start] == [client.prefix_token_id] else begun, rest)
        known = [place for place in known if place > end]


class Worst:
    """How many scores were compared, and the largest difference of a token, by the tolerance."""

    def __init__(self) -> None:
        self.count = 0
        self.differences = {STRICT: 0.0, FLIPPED: 0.0}

    def print(self, what: str) -> None:
        strict, flipped = self.differences.values()
        print(f"{what}: {self.count} scores, off by {strict:.1e} a token, {flipped:.1e} with other codes", flush=True)


def assert_recorded(client: Any, all_parts: list[Part], worst: Worst) -> None:
    answers = ask(client, "loglikelihood", [(part.context, part.continuation) for part in all_parts])
    for part, (found, is_greedy) in zip(all_parts, answers, strict=True):
        scores = [part.golden.score(place) for place in range(part.start, part.end)]
        tolerance = part.golden.tolerance
        difference = abs(found - math.fsum(one for one, _ in scores)) / len(scores)
        assert difference <= tolerance, (part.context, part.continuation, found, scores)
        assert tolerance > STRICT or is_greedy == all(best for _, best in scores), (part.context, part.continuation)
        worst.differences[tolerance] = max(worst.differences[tolerance], difference)
        worst.count += 1


def assert_the_commands(context: Context, client: Any, folder: str | Path, texts: list[str]) -> None:
    answers = ask(client, "loglikelihood_rolling", [(text,) for text in texts])
    for text, found in zip(texts, answers, strict=True):
        report = perplexity(context, folder, text)
        assert report["windows"] == 1, report
        difference = abs(math.exp(-found / report["counted"]) / report["perplexity"] - 1)
        assert difference <= 1e-9, (text, found, report)


def perplexity(context: Context, model: str | Path, text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_text(text, encoding="utf-8")
        command = [context.command, "perplexity", "--model", model, "--kv", "f32"]
        printed = subprocess.run([*command, "--text", path, "--json"], check=True, capture_output=True, text=True)
    return json.loads(printed.stdout)


def log_likelihoods_are_recorded(context: Context) -> None:
    client, worst = client_of(context.model, context.base_url), Worst()

    def spelled(ids: Sequence[int]) -> str:
        return BEGIN + client.tokenizer.decode(ids[1:])

    for name in NAMES:
        one = Tensors(Path(context.folder) / f"golden-{name}.safetensors").golden("ids", "logits")
        assert_recorded(client, list(parts(client, one, spelled)), worst)
    worst.print(context.model)


def perplexities_are_the_commands(context: Context) -> None:
    stories = json.loads((Path(context.folder) / "golden.json").read_text(encoding="utf-8"))
    texts = [story["prompt"] + story["text"] for story in stories.values()]
    assert_the_commands(context, client_of(context.model, context.base_url), context.folder, texts)


def models_without_tokenizers_score_as_recorded(context: Context) -> None:
    fixtures, worst = Path(context.folder).parent.parent, Worst()
    paths = [path for folder in FOLDERS for path in fixtures.glob(f"{folder}/golden.safetensors")]
    sources = [path.parent for path in paths if path.with_name("config.json").exists()]  # no GGUF file alone
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            words.write_model(source, Path(folder))
            with served(context.command, "--model", folder, "--kv", "f32") as (model, url):
                client, all_goldens = client_of(model, url), list(goldens(source))
                for one in all_goldens:
                    assert_recorded(client, list(parts(client, one, words.text)), worst)
                longest = max(all_goldens, key=lambda one: len(one.ids))
                assert_the_commands(context, client, folder, [words.text(longest.ids)])
    assert len(sources) >= MODELS, sources
    worst.print(f"{len(sources)} models")


if __name__ == "__main__":
    main([log_likelihoods_are_recorded, perplexities_are_the_commands, models_without_tokenizers_score_as_recorded])
