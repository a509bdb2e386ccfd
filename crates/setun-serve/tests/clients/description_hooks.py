"""Changes of requests: names of models that there are, no search for requests that are accepted, and a part of those at bounds."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import hypothesis
import schemathesis
from schemathesis.generation.meta import TestPhase

# Of the requests at bounds one of so many is made.
STRIDE, OFFSET = int(os.environ["SETUN_STRIDE"]), int(os.environ["SETUN_OFFSET"])

# Schemathesis scores a request by whether it is accepted, and Hypothesis then climbs towards higher scores. That takes four fifths of the
# time that drawing takes, and nothing here needs it.
hypothesis.target = lambda observation, *, label="": observation


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Most drawn names are of no model, which ends a request at once: three of four become the model's."""
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 4:
        return {**body, "model": os.environ["SETUN_MODEL"]}
    return body


places = count()


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Whether a request is made: all that are drawn, and of those at bounds the chosen ones."""
    at_bounds = case.meta is not None and case.meta.phase.name == TestPhase.COVERAGE
    return not at_bounds or next(places) % STRIDE == OFFSET
