"""A load of streams on a server with `/v1/completions`, for comparisons of servers.

    python3 load.py URL --streams 16 --requests 48
    python3 load.py URL --rate 4 --requests 48

Prompts are random token ids: of 128 tokens each (`random`), or a beginning that a quarter of the
requests share and 32 tokens more (`prefix`), as in `vllm bench serve`. With `--streams` the next
request starts when one has ended (closed loop); with `--rate` requests start by the clock, with
exponential gaps (open loop). A request is good if its first token came within 2 s and the others
at most 100 ms apart on average. The result is one line of JSON.
"""

import argparse
import asyncio
import json
import random
import time
from urllib.parse import urlsplit

PROMPT_TOKENS = 128
SHARED_TOKENS = 96
SHARED_PREFIXES = 4
NEW_TOKENS = 64
FIRST_TOKEN_SECONDS = 2.0
TOKEN_SECONDS = 0.1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--streams", type=int, help="streams at once")
    load.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--workload", choices=["random", "prefix"], default="random")
    parser.add_argument("--vocabulary", type=int, default=32000, help="tokens of the model")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def prompts(options, rng):
    def tokens(count):
        return [rng.randrange(300, options.vocabulary) for _ in range(count)]

    if options.workload == "random":
        return [tokens(PROMPT_TOKENS) for _ in range(options.requests)]
    prefixes = [tokens(SHARED_TOKENS) for _ in range(SHARED_PREFIXES)]
    suffix = PROMPT_TOKENS - SHARED_TOKENS
    return [prefixes[i % SHARED_PREFIXES] + tokens(suffix) for i in range(options.requests)]


async def request(address, prompt):
    """When the request began and when each of its events came."""
    # No server ends the text early: vLLM's and llama-server's name, then setun's.
    body = {"prompt": prompt, "max_tokens": NEW_TOKENS, "temperature": 0, "stream": True}
    body = json.dumps(body | {"ignore_eos": True, "min_tokens": NEW_TOKENS}).encode()
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection(*address)
    # Bodies of HTTP/1.0 have no chunks.
    writer.write(b"POST /v1/completions HTTP/1.0\r\nHost: localhost\r\n")
    writer.write(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
    writer.write(body)
    status = await reader.readline()
    if b" 200 " not in status:
        raise SystemExit((status + await reader.read()).decode(errors="replace"))
    times = []
    while piece := await reader.read(65536):
        times += [time.perf_counter()] * piece.count(b"data: {")
    writer.close()
    return begun, times


async def run(options):
    rng = random.Random(options.seed)
    url = urlsplit(options.url)
    address = (url.hostname, url.port or 80)
    todo = iter(prompts(options, rng))
    results = []

    async def stream():
        for prompt in todo:
            results.append(await request(address, prompt))

    begun = time.perf_counter()
    if options.rate:
        tasks = []
        for prompt in todo:
            tasks.append(asyncio.create_task(request(address, prompt)))
            await asyncio.sleep(rng.expovariate(options.rate))
        results = await asyncio.gather(*tasks)
    else:
        await asyncio.gather(*(stream() for _ in range(options.streams)))
    return results, time.perf_counter() - begun


def is_good(result):
    begun, times = result
    between = (times[-1] - times[0]) / max(1, len(times) - 1)
    return times[0] - begun <= FIRST_TOKEN_SECONDS and between <= TOKEN_SECONDS


def report(options, results, seconds):
    first = sorted(times[0] - begun for begun, times in results)
    gaps = sorted(b - a for _, times in results for a, b in zip(times, times[1:]))

    def milliseconds(values, share):
        return round(values[min(len(values) - 1, int(len(values) * share))] * 1e3, 2)

    load = {"streams": options.streams} if options.streams else {"rate": options.rate}
    return load | {
        "workload": options.workload,
        "requests_per_second": round(len(results) / seconds, 3),
        "goodput_per_second": round(sum(map(is_good, results)) / seconds, 3),
        "tokens_per_second": round(len(results) * NEW_TOKENS / seconds, 1),
        "first_token_ms": [milliseconds(first, 0.5), milliseconds(first, 0.99)],
        "between_tokens_ms": [milliseconds(gaps, 0.5), milliseconds(gaps, 0.99)],
    }


def main():
    options = arguments()
    results, seconds = asyncio.run(run(options))
    print(json.dumps(report(options, results, seconds)))


if __name__ == "__main__":
    main()
