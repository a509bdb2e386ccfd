"""Tasks of lm-evaluation-harness over a model with recorded logits, through its client `local-completions`.

By hand, as the harness needs much: `pip install "lm_eval[api]==0.4.13"`, then `python golden_tasks.py PATH_OF_SETUN`.
Log-likelihoods are those of transformers, whose logits the fixture has; perplexities are those of `setun perplexity`. No model or data set is fetched.
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

FIXTURE = Path(__file__).parents[5] / "tests" / "fixtures" / "golden" / "real-tinystories-1m"

# Logits agree to this, so a logarithm of a probability to twice as much.
STRICT = 1e-4

BEGIN = "<s>"


@dataclass
class Golden:
    """Tokens of a text, and transformers' logarithms of the probabilities of all but the first."""

    ids: list[int]
    logprobs: list[float]
    is_greedy: list[bool]


def golden(name: str) -> Golden:
    content = (FIXTURE / f"golden-{name}.safetensors").read_bytes()
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


@contextmanager
def served(command: str) -> Iterator[str]:
    """The address of a server over the fixture."""
    serve = [command, "serve", "--model", str(FIXTURE), "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        try:
            for line in server.stderr:
                if line.startswith("serving "):
                    yield line.rsplit(" at ", 1)[1].strip()
                    return
            raise RuntimeError("`setun serve` ended")
        finally:
            server.terminate()


def text_of(url: str, ids: list[int]) -> str:
    answer = requests.post(f"{url}/detokenize", json={"tokens": ids}, timeout=60)
    answer.raise_for_status()
    return answer.json()["prompt"]


def documents(url: str, goldens: dict[str, Golden]) -> list[dict[str, str]]:
    """Each text after nothing, and its rest after each of some beginnings."""
    found = []
    for name, one in goldens.items():
        whole = text_of(url, one.ids[1:])
        found.append({"name": name, "from": 1, "context": "", "continuation": whole})
        for end in range(3, len(one.ids) - 1, 3):
            begun = text_of(url, one.ids[1:end])
            rest = {"context": BEGIN + begun, "continuation": whole[len(begun) :]}
            found.append({"name": name, "from": end, **rest})
    return found


def evaluate(url: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    from lm_eval import simple_evaluate

    arguments = {
        "base_url": f"{url}/v1/completions",
        "model": requests.get(f"{url}/v1/models", timeout=60).json()["data"][0]["id"],
        "tokenizer_backend": "remote",
        "max_length": 512,
    }
    return simple_evaluate(model="local-completions", model_args=arguments, tasks=tasks, log_samples=True)


def task(name: str, folder: Path, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    path = folder / f"{name}.json"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    split = {"dataset_kwargs": {"data_files": {"test": str(path)}}, "test_split": "test"}
    return {"task": name, "dataset_path": "json", **split, "target_delimiter": "", **more}


def check_likelihoods(samples: list[dict[str, Any]], goldens: dict[str, Golden]) -> float:
    """The largest difference of a token's mean, which has to be within the goldens' tolerance."""
    worst = 0.0
    for sample in samples:
        one, begin = goldens[sample["doc"]["name"]], sample["doc"]["from"]
        expected = math.fsum(one.logprobs[begin - 1 :])
        found, is_greedy = (json.loads(part.lower()) if isinstance(part, str) else part for part in sample["resps"][0][0])
        count = len(one.ids) - begin
        difference = abs(float(found) - expected) / count
        assert difference <= 2 * STRICT, (sample["doc"], found, expected)
        assert bool(is_greedy) == all(one.is_greedy[begin - 1 :]), sample["doc"]
        worst = max(worst, difference)
    return worst


def check_perplexities(command: str, folder: Path, samples: list[dict[str, Any]]) -> float:
    """The largest relative difference from what the command prints for the same text."""
    worst = 0.0
    for sample in samples:
        path = folder / "text"
        path.write_text(sample["doc"]["text"], encoding="utf-8")
        printed = subprocess.run(
            [command, "perplexity", "--model", str(FIXTURE), "--text", str(path), "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        report = json.loads(printed.stdout)
        assert report["windows"] == 1, report
        (found,) = sample["resps"][0]
        perplexity = math.exp(-float(found) / report["counted"])
        difference = abs(perplexity / report["perplexity"] - 1)
        assert difference <= STRICT, (sample["doc"], perplexity, report)
        worst = max(worst, difference)
    return worst


def main() -> None:
    (command,) = sys.argv[1:]
    goldens = {name: golden(name) for name in ("bos", "dog", "once")}
    stories = json.loads((FIXTURE / "golden.json").read_text(encoding="utf-8"))
    texts = [{"text": story["prompt"] + story["text"]} for story in stories.values()]
    with tempfile.TemporaryDirectory() as name, served(command) as url:
        folder = Path(name)
        os.environ |= {"HF_HOME": name, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        found = documents(url, goldens)
        likelihood = task(
            "golden_likelihood",
            folder,
            found,
            output_type="loglikelihood",
            doc_to_text="{{context}}",
            doc_to_target="{{continuation}}",
            metric_list=[{"metric": "perplexity", "aggregation": "perplexity", "higher_is_better": False}],
        )
        rolling = task(
            "golden_perplexity",
            folder,
            texts,
            output_type="loglikelihood_rolling",
            doc_to_text="",
            doc_to_target="{{text}}",
            metric_list=[{"metric": "byte_perplexity"}],
        )
        samples = evaluate(url, [likelihood, rolling])["samples"]
        assert len(samples["golden_likelihood"]) == len(found), samples
        assert len(samples["golden_perplexity"]) == len(texts), samples
        worst = check_likelihoods(samples["golden_likelihood"], goldens)
        print(f"{len(found)} log-likelihoods, mean of a token off by at most {worst:.1e} from transformers'")
        worst = check_perplexities(command, folder, samples["golden_perplexity"])
        print(f"{len(texts)} perplexities, off by at most {worst:.1e} from `setun perplexity`")


if __name__ == "__main__":
    main()
