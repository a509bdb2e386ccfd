"""Requests that schemathesis makes of the description of the routes, valid and invalid, and checks of the answers.

Run as `description.py BASE_URL MODEL`. It ends with an error if an answer is a fault of the server, has a status, a type or a body that
is not described, or if an invalid request is accepted.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

# Requests that cover the bounds of each field, which are not drawn: some more than these. Where fewer are asked for, each
# so-manieth of them is made.
COVERED = 9_000

# Routes with a body. Further requests are drawn for each of them.
ROUTES = 17

COMMAND = "from schemathesis.cli import schemathesis; schemathesis()"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url", help="without the path of an API")
    parser.add_argument("model", help="the model of most requests")
    parser.add_argument("--cases", type=int, default=10_000, help="least number of requests")
    parser.add_argument("--seed", type=int, default=os.environ.get("SETUN_SEED", "0"), help="what draws begin with")
    given = parser.parse_args()
    print(f"description.py: {given.cases} cases, --seed {given.seed}", flush=True)
    drawn = max(given.cases - COVERED, 0)
    options = [
        f"--config-file={FOLDER / 'schemathesis.toml'}",
        "run",
        f"{given.base_url}/openapi.json",
        f"--max-examples={-(-drawn // ROUTES) or 1}",
        f"--seed={given.seed}",
        # What failed in an earlier run is no part of this one.
        "--generation-database=none",
    ]
    stride = max(COVERED // given.cases, 1)
    environment = {**os.environ, "SETUN_MODEL": given.model}
    environment |= {"SETUN_STRIDE": str(stride), "SETUN_OFFSET": str(given.seed % stride)}
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
    assert found and int(found[1]) >= given.cases, "fewer requests than were asked for"
    print("# pass 1", flush=True)


if __name__ == "__main__":
    main()
