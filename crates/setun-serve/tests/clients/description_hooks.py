"""Changes of drawn requests: names of models that there are, and no search for requests that are accepted."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import schemathesis

# Schemathesis scores a request by whether it is accepted, and Hypothesis then climbs towards higher scores. That takes four fifths of the
# time that drawing takes, and nothing here needs it.
hypothesis.target = lambda observation, *, label="": observation


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Most drawn names are of no model, which ends a request at once: three of four become the model's."""
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 4:
        return {**body, "model": os.environ["SETUN_MODEL"]}
    return body
