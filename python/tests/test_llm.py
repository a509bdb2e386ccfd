"""Results against the command's, and against each other."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import CHAT_MODEL, COMMAND, PROMPTS, by_command, draw_options, run_by_command

import setun
from setun import LLM, RowError, SetunError


def test_a_text_is_that_of_the_command(llm: LLM, drawn: random.Random) -> None:
    for prompt in PROMPTS:
        options = draw_options(drawn)
        (found,) = llm.generate(prompt, **options)
        text, tokens, reason = run_by_command(prompt, **options)
        assert (found.text, found.tokens.tolist(), found.finish_reason) == (text, tokens, reason), options
        assert found.seed == options["seed"]
        assert found.completion_tokens == len(tokens)
        assert found.prompt_tokens == len(llm.tokenize(prompt))


def test_rows_of_a_list_are_as_they_are_alone(llm: LLM, drawn: random.Random) -> None:
    prompts = [drawn.choice(PROMPTS) + " " + "abc"[: drawn.randint(0, 3)] for _ in range(60)]
    options = {"max_tokens": 12, "seed": 5, "temperature": 0.9}
    together = llm.generate(np.array(prompts), **options)
    with LLM(threads=1, max_concurrent=3) as other:
        reverse = other.generate(prompts[::-1], **options)[::-1]
    for prompt, one, two in zip(prompts, together, reverse):
        assert one.text == two.text
        assert one.tokens.tolist() == two.tokens.tolist()
    alone = [llm.generate(prompt, **options)[0].text for prompt in prompts[:10]]
    assert alone == [row.text for row in together[:10]]


def test_keys_give_rows_the_seeds_of_batch_jobs(llm: LLM) -> None:
    rows = llm.generate(["The cat"] * 4, keys=[10, 11, "a", "ä"], seed=7, max_tokens=8)
    for key, row in zip(["10", "11", "a", "ä"], rows):
        digest = hashlib.sha256((7).to_bytes(8, "little") + key.encode()).digest()
        assert row.seed == int.from_bytes(digest[:8], "big") >> 11
        assert row.text == run_by_command("The cat", seed=row.seed, max_tokens=8)[0]
    with pytest.raises(SetunError, match="keys are 1, expected 2") as raised:
        llm.generate(["a", "b"], keys=["x"])
    assert raised.value.code == "bad-option"


def test_tokens_and_logprobs(llm: LLM) -> None:
    tokens = llm.tokenize("Once upon a time")
    assert llm.detokenize(tokens) == "Once upon a time"
    by_text, by_tokens, by_list = (
        llm.generate(prompt, max_tokens=6, temperature=0, logprobs=True)[0]
        for prompt in ("Once upon a time", tokens, tokens.tolist())
    )
    assert by_text.text == by_tokens.text == by_list.text
    assert by_text.logprobs is not None
    assert len(by_text.logprobs) == len(by_text.tokens) == 6
    assert by_text.logprobs.max() <= 0
    # What was generated is scored with the same bits.
    (score,) = llm.score(tokens, by_text.text)
    assert score.tokens.tolist() == by_text.tokens.tolist()
    assert score.logprobs.tolist() == by_text.logprobs.tolist()
    assert llm.generate("The", max_tokens=1)[0].logprobs is None


def test_scores_are_those_of_the_command(llm: LLM) -> None:
    texts = [" sat", " zebra", " was happy."]
    expected = by_command("score", "--json", "The cat", *(word for text in texts for word in ("--text", text)))
    found = llm.score("The cat", texts)
    assert [score.logprob for score in found] == [line["logprob"] for line in expected]
    assert [score.mean_logprob for score in found] == [line["mean_logprob"] for line in expected]
    assert [score.logprob for score in llm.score(["The cat"] * 3, texts)] == [score.logprob for score in found]
    assert llm.score([], []) == []
    with pytest.raises(ValueError, match="2 prompts, 3 continuations"):
        llm.score(["a", "b"], texts)


def test_perplexity_is_that_of_the_command(llm: LLM, tmp_path: Path) -> None:
    text = "Once upon a time there was a girl. She had a red ball."
    (tmp_path / "text").write_text(text)
    (line,) = by_command("perplexity", "--json", "--kv=f16", "--text", str(tmp_path / "text"))
    found = llm.perplexity([text, text])
    assert found.tolist() == pytest.approx([line["perplexity"]] * 2, rel=1e-12)


def test_embeddings_are_those_of_the_command(llm: LLM) -> None:
    lines = by_command("embed", "--json", "--pooling", "mean", *PROMPTS)
    found = llm.embed(PROMPTS, pooling="mean")
    assert found.dtype == np.float32
    expected = np.array([line["embedding"] for line in lines], dtype=np.float32)
    assert found.tobytes() == expected.tobytes()
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(PROMPTS)), rel=1e-6)
    assert llm.embed([]).shape == (0, found.shape[1])
    longer = llm.embed("a", normalize=False)
    assert longer.shape == (1, found.shape[1])
    with pytest.raises(SetunError, match="pooling"):
        llm.embed("a", pooling="max")  # type: ignore[arg-type]


def test_rows_wait_for_the_places_of_streams() -> None:
    with LLM(threads=1, max_concurrent=4, queue=4) as small:
        streams = [small.stream("Once upon", min_tokens=300, max_tokens=300) for _ in range(5)]
        rows = small.generate(PROMPTS * 8, max_tokens=4, temperature=0)
        alone = small.generate(PROMPTS, max_tokens=4, temperature=0)
        assert [row.text for row in rows] == [row.text for row in alone] * 8
        assert all(len("".join(delta.text for delta in stream)) > 100 for stream in streams)


def test_a_stream_gives_the_same_text(llm: LLM) -> None:
    (whole,) = llm.generate("Once upon a time", max_tokens=30, seed=3, logprobs=True)
    deltas = list(llm.stream("Once upon a time", max_tokens=30, seed=3, logprobs=True))
    assert "".join(delta.text for delta in deltas) == whole.text
    assert [delta.token for delta in deltas] == whole.tokens.tolist()
    assert whole.logprobs is not None
    assert [delta.logprob for delta in deltas] == whole.logprobs.tolist()


def test_chats_are_those_of_the_command(chat_llm: LLM, tmp_path: Path) -> None:
    conversation = [{"role": "system", "content": "You are a cat."}, {"role": "user", "content": "Who are you?"}]
    (tmp_path / "messages.json").write_text(json.dumps(conversation))
    options = ["--model", CHAT_MODEL, "--seed=9", "--max-tokens=12"]
    command = [COMMAND, "chat", *options, "--messages", str(tmp_path / "messages.json")]
    expected = subprocess.run(command, check=True, capture_output=True).stdout.decode().removesuffix("\n")
    (one,) = chat_llm.chat(conversation, seed=9, max_tokens=12)
    two = chat_llm.chat([conversation, conversation[1:]], seed=9, max_tokens=12)
    assert one.text == two[0].text == expected
    assert "".join(delta.text for delta in chat_llm.stream(conversation, seed=9, max_tokens=12)) == expected
    bad = [[{"role": 5}], None, [{"role": "user", "content": float("nan")}]]
    rows = chat_llm.chat([conversation, *bad], seed=9, max_tokens=12, errors="return")
    assert rows[0].text == expected
    assert all("messages: " in str(row.error) for row in rows[1:]), rows
    assert chat_llm.chat(np.array([conversation[1]]), max_tokens=1)[0].error is None


def test_a_model_without_a_chat_template_refuses_conversations(llm: LLM) -> None:
    assert not llm.has_chat_template
    with pytest.raises(SetunError, match="no chat template"):
        llm.chat([{"role": "user", "content": "a"}])


def test_constraints_are_followed(llm: LLM) -> None:
    schema = {
        "type": "object",
        "properties": {"day": {"enum": ["good", "bad"]}},
        "required": ["day"],
        "additionalProperties": False,
    }
    for row in llm.generate(PROMPTS, json_schema=schema, max_tokens=60, seed=1):
        assert json.loads(row.text)["day"] in ("good", "bad")
    assert llm.generate("A", choice=["yes", "no"], seed=1)[0].text in ("yes", "no")
    assert llm.generate("A", regex="[0-9]{3}", seed=1)[0].text.isdigit()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_token": 3}, "`max_token` is unknown, expected one of"),
        ({"temperature": -1}, "option `temperature` is -1, expected"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"regex": "("}, "unclosed group"),
        ({"regex": "a", "choice": ["b"]}, "beside `regex`"),
        ({"json_schema": {"type": 5}}, "expected a type"),
        ({"top_logprobs": 2}, "`top_logprobs` is unknown"),
    ],
)
def test_options_are_refused_by_name_before_any_row(llm: LLM, options: dict[str, object], words: str) -> None:
    with pytest.raises(SetunError, match="(?s)" + words.replace("(", "\\(")) as raised:
        llm.generate(["a", "b"], **options)
    assert raised.value.code == "bad-option"
    assert not isinstance(raised.value, RowError)


BAD_ROWS = [
    ("word " * 4000, "the context holds 512"),
    (None, "the row is None, expected a string or tokens"),
    (float("nan"), "the row is nan"),
    (np.float32("nan"), "expected a string or tokens"),
    (b"bytes", "expected a string or tokens"),
    ("\ud800", "no UTF-8"),
    ([-1], "tokens: -1"),
    ([2**40], "tokens: 1099511627776"),
    ([True], "tokens: True"),
    ([1.5], "tokens: "),
    (["1"], "tokens: "),
    ([10**6], "token 1000000"),
]


def test_a_bad_row_spoils_no_other(llm: LLM) -> None:
    bad = [row for row, _ in BAD_ROWS]
    rows = llm.generate(["The cat", *bad, "The dog"], errors="return", max_tokens=4, seed=1)
    for found, (_, words) in zip(rows[1:-1], BAD_ROWS):
        assert words in str(found.error), found.error
        assert found.finish_reason == "error"
    assert rows[0].error is rows[-1].error is None
    assert rows[-1].text == llm.generate("The dog", max_tokens=4, seed=1)[0].text
    with pytest.raises(RowError, match="row 1: ") as raised:
        llm.generate(["The cat", *bad], max_tokens=1)
    assert (raised.value.row, raised.value.code) == (1, "bad-row")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_bad_rows_of_other_calls(llm: LLM) -> None:
    mixed, missing = ["a", None], [None, "word " * 4000]
    assert np.isnan(llm.embed(mixed, errors="return")).all(axis=1).tolist() == [False, True]
    assert llm.embed(missing, errors="return").shape == llm.embed(["a", "b"]).shape
    assert np.isnan(llm.perplexity(["a b c", "word " * 4000], errors="return")).tolist() == [False, True]
    assert [score.error is None for score in llm.score("a", ["", " b", None], errors="return")] == [False, True, False]
    for rows in (b"a", {"a": 1}, 5):
        with pytest.raises(TypeError, match="expected a list or a column"):
            llm.generate(rows)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="errors: 'ignore'"):
        llm.generate(["a"], errors="ignore")  # type: ignore[arg-type]


def test_a_wait_that_is_too_long_is_an_error_of_its_row() -> None:
    with LLM(threads=1, max_concurrent=1) as llm:
        options = {"min_tokens": 400, "max_tokens": 400, "queue_timeout": 0.001}
        rows = llm.generate(["Once upon a time"] * 2, errors="return", **options)
    assert "queue_timeout" in str(rows[1].error)


def test_a_text_that_its_form_has_go_on_is_unfinished(llm: LLM) -> None:
    schema = {"type": "string", "minLength": 50}
    for options, unfinished in [
        ({"json_schema": schema, "max_tokens": 5}, True),
        ({"regex": "[a-z]{30}", "max_tokens": 3}, True),
        ({"json_schema": {"type": "boolean"}, "max_tokens": 20}, False),
        ({"max_tokens": 3}, False),
    ]:
        (row,) = llm.generate(["The cat"], seed=1, **options)
        assert row.unfinished is unfinished, (options, row.text, row.finish_reason)
        assert row.finish_reason == "length" or not unfinished
    (failed,) = llm.generate([None], errors="return")  # type: ignore[list-item]
    assert failed.unfinished is False


def test_columns_are_a_table(llm: LLM) -> None:
    rows = llm.generate(["The cat", None], errors="return", max_tokens=4)  # type: ignore[list-item]
    columns = setun.columns(rows)
    assert list(columns) == [
        "text", "finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "error",
    ]
    assert columns["completion_tokens"].tolist() == [4, 0]
    assert columns["text"].tolist() == [rows[0].text, ""]
    assert columns["error"].tolist() == [None, rows[1].error]


def test_models_that_cannot_be_loaded_say_why(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0notjson!")
    cases = [
        (tmp_path / "model.safetensors", {}, "bad-checkpoint"),
        (tmp_path, {}, "not-found"),
        ("no/such-model", {}, "not-found"),
        (None, {"threads": 0}, "bad-option"),
        (None, {"thread": 1}, "bad-option"),
        (None, {"backend": "abacus"}, "backend-unavailable"),
    ]
    for model, options, code in cases:
        with pytest.raises(SetunError) as raised:
            LLM(model, **options)
        assert raised.value.code == code, (model, options, raised.value)


def test_options_of_the_engine(llm: LLM) -> None:
    with LLM(threads=np.int64(1), context_length=64, backend="cpu") as small:
        assert small.context_length == 64
        assert small.backend.startswith("cpu ")
        assert small.vocab_size == llm.vocab_size
        assert repr(small).startswith("LLM(None, threads=")


def test_a_model_is_pulled_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETUN_HOME", str(tmp_path))
    monkeypatch.setenv("SETUN_OFFLINE", "1")
    with pytest.raises(SetunError, match="the network is switched off") as raised:
        setun.pull("microsoft/bitnet-b1.58-2B-4T")
    assert raised.value.code
    assert os.listdir(tmp_path) in ([], ["models"])
