"""A tokenizer for models that have none: each token is a word."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path


def word(token: int) -> str:
    """No word is a part of another."""
    return f"w{token:04}"


def text(ids: Iterable[int]) -> str:
    return " ".join(map(word, ids))


def write_model(source: Path, folder: Path) -> None:
    """A copy of a model with a tokenizer. A text begins with the configuration's first token."""
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(source / name, folder / name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    first, size = config["bos_token_id"], config["vocab_size"]
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": beginning(first),
        "decoder": None,
        "model": {"type": "WordLevel", "unk_token": word(0), "vocab": {word(token): token for token in range(size)}},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    named = {"bos_token": word(first), "eos_token": word(config["eos_token_id"])}
    (folder / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")


def beginning(token: int) -> dict[str, object]:
    """What puts a token before each text."""
    name = word(token)
    single = [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    special = {name: {"id": name, "ids": [token], "tokens": [name]}}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
