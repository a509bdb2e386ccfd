"""Judges the metrics of a server by `promtool check metrics`.

Usage: metrics.py BASE_URL PROMTOOL
"""

import json
import re
import subprocess
import sys
import urllib.request

# Names that are vLLM's: colons, and a histogram with the ending of a counter.
KNOWN = [
    re.compile(r"vllm:\S+ metric names should not contain ':'"),
    re.compile(r"(setun_|vllm:)iteration_tokens_total non-counter metrics should not have \"_total\" suffix"),
]


def main() -> None:
    base_url, promtool = sys.argv[1:]
    for is_streamed in (False, True):
        body = {"prompt": "A cat", "max_tokens": 3, "stream": is_streamed}
        urllib.request.urlopen(f"{base_url}/v1/completions", json.dumps(body).encode()).read()
    page = urllib.request.urlopen(f"{base_url}/metrics").read()
    judged = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, check=False)
    said = (judged.stdout + judged.stderr).decode()
    complaints = [line for line in said.splitlines() if not any(known.fullmatch(line) for known in KNOWN)]
    names = len(re.findall(rb"^# TYPE ", page, re.MULTILINE))
    print(f"metrics.py: {names} metrics, {len(said.splitlines())} complaints", flush=True)
    assert names > 30 and complaints == [], said
    print("# pass 1", flush=True)


if __name__ == "__main__":
    main()
