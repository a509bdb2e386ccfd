"""A model beside threads, signals, forks and other processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from setun import LLM, SetunError

OPTIONS = {"max_tokens": 12, "seed": 4}


def test_other_threads_run_meanwhile(llm: LLM) -> None:
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(llm.generate, ["Once"] * 100, max_tokens=40)
        turns = 0
        while not call.done():
            turns += 1
            time.sleep(0.0005)
        assert len(call.result()) == 100
    assert turns > 20


def test_threads_share_a_model(llm: LLM) -> None:
    options = {"max_tokens": 3, "seed": 4}
    (expected,) = llm.generate("The cat", **options)
    with ThreadPoolExecutor(40) as pool:
        # More rows than the engine's queue has places.
        found = list(pool.map(lambda _: llm.generate(["The cat"] * 30, **options), range(40)))
    assert {row.text for rows in found for row in rows} == {expected.text}


def test_a_closed_stream_has_no_more(llm: LLM) -> None:
    stream = llm.stream("Once upon a time", max_tokens=300)
    next(stream)
    stream.close()
    assert list(stream) == []


# Whoever starts the tests in the background has them ignore SIGINT.
LONG = """
import signal
from setun import LLM
signal.signal(signal.SIGINT, signal.default_int_handler)
llm = LLM(threads=1)
try:
    print("ready", flush=True)
    llm.generate(["Once upon a time"] * 50000, max_tokens=400)
except KeyboardInterrupt:
    print("interrupted", len(llm.generate("The cat", max_tokens=3)[0].tokens), flush=True)
"""


def test_ctrl_c_ends_a_call_and_not_the_model() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            # The call would take many minutes, and the watchdog ends it before.
            assert process.stdout.readline() == "interrupted 3\n"
            assert process.wait(120) == 0
        finally:
            watchdog.cancel()
            process.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_is_told_and_does_not_hang(llm: LLM) -> None:
    stream = llm.stream("The cat", **OPTIONS)
    next(stream)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that hangs
        status = 1
        try:
            for call in (lambda: llm.generate("The cat"), lambda: next(stream), LLM):
                try:
                    call()
                except SetunError as error:
                    os.write(write, f"{error.code}: {error}\n".encode())
            llm.close()
            del stream
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as said:
        words = said.read().decode().splitlines()
    assert status == 0
    assert len(words) == 3
    assert all(line.startswith("forked: a model was loaded in the process") for line in words), words
    assert list(stream)
    assert llm.generate("The cat", **OPTIONS)[0].text


def in_process(llm: LLM) -> str:
    return llm.generate("The cat", **OPTIONS)[0].text


def test_a_pickled_model_is_loaded_again(llm: LLM) -> None:
    other = pickle.loads(pickle.dumps(llm))
    assert in_process(other) == in_process(llm)
    other.close()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(in_process, [llm, llm]) == [in_process(llm)] * 2
    (row,) = llm.generate("The cat", **OPTIONS)
    assert pickle.loads(pickle.dumps(row)).text == row.text


def test_a_closed_model_says_so_and_what_runs_goes_on(llm: LLM) -> None:
    other = LLM(threads=1)
    stream = other.stream("Once upon a time", **OPTIONS)
    first = next(stream)
    other.close()
    other.close()
    text = first.text + "".join(delta.text for delta in stream)
    assert text == llm.generate("Once upon a time", **OPTIONS)[0].text
    with pytest.raises(SetunError, match="closed") as raised:
        other.generate("a")
    assert raised.value.code == "disposed"
    assert pickle.loads(pickle.dumps(raised.value)).code == "disposed"


def resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_and_threads_return() -> None:
    def once() -> None:
        with LLM(threads=2, max_concurrent=4) as llm:
            llm.generate(["The cat"] * 8, **OPTIONS)

    for _ in range(5):
        once()
    before, threads = resident(), len(os.listdir("/proc/self/task"))
    for _ in range(30):
        once()
    deadline = time.monotonic() + 120
    while len(os.listdir("/proc/self/task")) > threads:
        assert time.monotonic() < deadline, "threads of closed models are left"
        time.sleep(0.05)
    assert resident() - before < 20 << 20
