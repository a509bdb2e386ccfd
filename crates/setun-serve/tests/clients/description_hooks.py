"""Changes of drawn requests: names of models that there are."""

from __future__ import annotations

import os
from typing import Any

import schemathesis


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Most drawn names are of no model, which ends a request at once: three of four become the model's."""
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 4:
        return {**body, "model": os.environ["SETUN_MODEL"]}
    return body
