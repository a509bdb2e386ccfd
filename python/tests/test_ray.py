"""Ray Data: a table over two workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray

import setun
from setun import LLM

ROWS = 96
OPTIONS: dict[str, Any] = {"max_tokens": 10, "temperature": 0.8, "seed": 7}


class Generate:
    """A model in each worker."""

    def __init__(self) -> None:
        self.llm = LLM(threads=1)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        rows = self.llm.generate(batch["prompt"], keys=batch["id"], errors="return", **OPTIONS)
        worker = np.full(len(rows), os.getpid())
        return batch | setun.columns(rows) | {"vector": self.llm.embed(batch["prompt"]), "worker": worker}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    # Work begins when both workers are there.
    ray.data.DataContext.get_current().wait_for_min_actors_s = 120
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="warning")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_two_workers_give_the_texts_of_one_process(llm: LLM) -> None:
    prompts = [f"Day {row % 7} was" for row in range(ROWS)]
    table = [{"id": row, "prompt": prompt} for row, prompt in enumerate(prompts)]
    mapped = ray.data.from_items(table, override_num_blocks=8).map_batches(
        Generate, batch_size=12, compute=ray.data.ActorPoolStrategy(size=2)
    )
    found = sorted(mapped.take_all(), key=lambda row: row["id"])
    expected = llm.generate(prompts, keys=range(ROWS), **OPTIONS)
    assert [row["id"] for row in found] == list(range(ROWS))
    assert [row["text"] for row in found] == [row.text for row in expected]
    assert [row["completion_tokens"] for row in found] == [row.completion_tokens for row in expected]
    assert {row["error"] for row in found} == {None}
    vectors = np.stack([row["vector"] for row in found])
    assert vectors.tobytes() == llm.embed(prompts).tobytes()
    assert len({row["worker"] for row in found}) == 2
