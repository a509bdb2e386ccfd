"""Reads the spans that a server exports, with the messages of OpenTelemetry's own package.

Usage: traces.py COMMAND
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
from common import served
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None, bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, self.headers["content-type"], body))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


def exported(command: str, use: Any) -> list[Span]:
    """The spans of a server that is used and ended."""
    collector = Collector()
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    with served(command, "--otlp-endpoint", endpoint) as (model, url):
        use(openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0), model)
    return [span for request in collector.requests for span in parsed(*request)]


def parsed(path: str, content_type: str | None, body: bytes) -> list[Span]:
    """The spans of a request; a field that the messages lack is an error."""
    assert (path, content_type) == ("/v1/traces", "application/json")
    request = json_format.ParseDict(json.loads(body, object_hook=with_base64), ExportTraceServiceRequest())
    for resource in request.resource_spans:
        assert texts(resource.resource)["service.name"] == "setun"
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def with_base64(value: dict[str, Any]) -> dict[str, Any]:
    """OTLP writes ids in hexadecimal, where the messages' JSON has base64."""
    ids = ("traceId", "spanId", "parentSpanId")
    return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ids else v for k, v in value.items()}


def texts(attributed: Any) -> dict[str, Any]:
    """Attributes by their names."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributed.attributes}


def use(client: openai.OpenAI, model: str) -> None:
    def headers(parent: str) -> dict[str, str]:
        return {"traceparent": parent}

    whole = {"model": model, "prompt": "A cat", "max_tokens": 4}
    client.completions.create(**whole, temperature=0.5, seed=3, extra_headers=headers(SAMPLED))
    for _ in client.completions.create(**whole, stream=True):
        pass
    client.completions.create(**whole, extra_headers=headers(UNSAMPLED))
    client.embeddings.create(model=model, input="A cat")
    try:
        client.completions.create(model=model, prompt="A cat " * 4000)
    except openai.BadRequestError:
        return
    raise AssertionError("a prompt beyond the context was taken")


def main() -> None:
    spans = exported(sys.argv[1], use)
    assert [span.name.split()[0] for span in spans] == ["text_completion"] * 2 + ["embeddings", "text_completion"], spans
    child, streamed, embedding, failed = spans
    assert (child.trace_id.hex(), child.parent_span_id.hex()) == (TRACE, PARENT)
    assert len({span.span_id for span in spans}) == 4 and not streamed.parent_span_id
    for span in spans:
        assert span.kind == Span.SPAN_KIND_SERVER and 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        assert len(span.trace_id) == 16 and len(span.span_id) == 8
    found = texts(child)
    assert found["gen_ai.operation.name"] == "text_completion" and found["gen_ai.usage.output_tokens"] == 4
    assert (found["gen_ai.request.temperature"], found["gen_ai.request.seed"]) == (0.5, 3)
    assert [reason.string_value for reason in found["gen_ai.response.finish_reasons"].values] == ["length"]
    assert texts(streamed)["gen_ai.response.time_to_first_chunk"] > 0
    assert texts(embedding)["gen_ai.usage.input_tokens"] > 0
    assert failed.status.code == Status.STATUS_CODE_ERROR and texts(failed)["error.type"], failed
    print("# pass 1", flush=True)


if __name__ == "__main__":
    main()
