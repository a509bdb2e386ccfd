"""Requests that schemathesis makes of the description of the routes, valid and invalid, and checks of the answers.

Run as `description.py BASE_URL MODEL --cases N`. It ends with an error if an answer is a fault of the server, has a status, a type or a body that
is not described, or if an invalid request is accepted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

# Routes with a body, whose cases are as many as are asked for; the others have a few each.
ROUTES = 15

COMMAND = "from schemathesis.cli import schemathesis; schemathesis()"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url", help="without the path of an API")
    parser.add_argument("model", help="the model of most requests")
    parser.add_argument("--cases", type=int, default=10_000, help="least number of requests")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None, help="repeats a draw")
    given = parser.parse_args()
    seed = random.randrange(2**31) if given.seed is None else given.seed
    print(f"description.py: {given.cases} cases, --seed {seed}", flush=True)
    options = [
        f"--config-file={FOLDER / 'schemathesis.toml'}",
        "run",
        f"{given.base_url}/openapi.json",
        f"--max-examples={-(-given.cases // ROUTES)}",
        f"--workers={given.workers}",
        f"--seed={seed}",
    ]
    environment = {**os.environ, "SETUN_MODEL": given.model}
    environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, "-s", "-c", COMMAND, *options],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    print(ended.stdout, flush=True)
    assert ended.returncode == 0, ended.returncode
    found = re.search(r"(\d+) generated", ended.stdout)
    assert found and int(found[1]) >= given.cases, "fewer cases than were asked for"
    print("# pass 1", flush=True)


if __name__ == "__main__":
    main()
