"""Log-likelihoods and perplexities that lm-evaluation-harness gets by its client `local-completions`.

Run as `lm_eval_client.py BASE_URL MODEL`. The model has recorded logits, and the server's KV cache has the type `f32`, as theirs had.
The harness is here without what reads data sets: the requests are made as its tasks make them, and sent by its own client.
"""

from __future__ import annotations

import json
import math
import struct
import subprocess
import tempfile
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import Context, main
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model

NAMES = ("bos", "dog", "once")

# Logits agree to 1e-4, so a logarithm of a probability to twice as much.
TOLERANCE = 2e-4

BEGIN = "<s>"


@dataclass
class Golden:
    """Tokens of a text, and by an independent implementation the log-probabilities of all but the first."""

    ids: list[int]
    logprobs: list[float]
    is_greedy: list[bool]


@dataclass
class Part:
    """A text from one of its tokens on, as a continuation of what is before."""

    golden: Golden
    start: int
    context: str
    continuation: str


def read_golden(folder: Path, name: str) -> Golden:
    content = (folder / f"golden-{name}.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])

    def values(tensor: str, code: str) -> array[Any]:
        start, end = (8 + length + offset for offset in header[tensor]["data_offsets"])
        return array(code, content[start:end])

    ids, logits = list(values("ids", "i")), values("logits", "f")
    size = header["logits"]["shape"][1]
    rows = [logits[place * size : (place + 1) * size] for place in range(len(ids) - 1)]
    sums = [max(row) + math.log(math.fsum(math.exp(one - max(row)) for one in row)) for row in rows]
    logprobs = [row[token] - total for row, total, token in zip(rows, sums, ids[1:], strict=True)]
    greedy = [row[token] == max(row) for row, token in zip(rows, ids[1:], strict=True)]
    return Golden(ids, logprobs, greedy)


def client_of(context: Context) -> Any:
    url = f"{context.base_url}/v1/completions"
    client = get_model("local-completions")
    return client(base_url=url, model=context.model, tokenizer_backend="remote", max_length=512)


def ask(client: Any, kind: str, requests: list[tuple[str, ...]]) -> list[Any]:
    instances = [Instance(kind, {}, request, place) for place, request in enumerate(requests)]
    return getattr(client, kind)(instances, disable_tqdm=True)


def parts(client: Any, one: Golden) -> list[Part]:
    """A text after nothing, and its rest after each of some beginnings."""
    whole = client.tokenizer.decode(one.ids[1:])
    found = [Part(one, 1, "", whole)]
    for start in range(3, len(one.ids) - 1, 3):
        begun = client.tokenizer.decode(one.ids[1:start])
        found.append(Part(one, start, BEGIN + begun, whole[len(begun) :]))
    return found


def log_likelihoods_are_recorded(context: Context) -> None:
    client = client_of(context)
    all_parts = [part for name in NAMES for part in parts(client, read_golden(Path(context.folder), name))]
    answers = ask(client, "loglikelihood", [(part.context, part.continuation) for part in all_parts])
    worst = 0.0
    for part, (found, is_greedy) in zip(all_parts, answers, strict=True):
        expected = part.golden.logprobs[part.start - 1 :]
        difference = abs(found - math.fsum(expected)) / len(expected)
        assert difference <= TOLERANCE, (part, found)
        assert is_greedy == all(part.golden.is_greedy[part.start - 1 :]), part
        worst = max(worst, difference)
    print(f"{len(all_parts)} log-likelihoods, off by at most {worst:.1e} a token", flush=True)


def perplexities_are_the_commands(context: Context) -> None:
    stories = json.loads((Path(context.folder) / "golden.json").read_text(encoding="utf-8"))
    texts = [story["prompt"] + story["text"] for story in stories.values()]
    answers = ask(client_of(context), "loglikelihood_rolling", [(text,) for text in texts])
    for text, found in zip(texts, answers, strict=True):
        report = perplexity(context, text)
        assert report["windows"] == 1, report
        difference = abs(math.exp(-found / report["counted"]) / report["perplexity"] - 1)
        assert difference <= 1e-9, (text, found, report)


def perplexity(context: Context, text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_text(text, encoding="utf-8")
        command = [context.command, "perplexity", "--model", context.folder, "--kv", "f32"]
        printed = subprocess.run([*command, "--text", path, "--json"], check=True, capture_output=True, text=True)
    return json.loads(printed.stdout)


if __name__ == "__main__":
    main([log_likelihoods_are_recorded, perplexities_are_the_commands])
