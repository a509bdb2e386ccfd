"""The official client of OpenAI's API, in its strict mode where its own types allow that."""

from __future__ import annotations

import json
from typing import Any

from openai import BadRequestError, NotFoundError, OpenAI
from openai.types import Batch

from common import (
    Context,
    chat,
    conversation,
    draw,
    draw_arguments,
    draw_tools,
    drawn_thoughts,
    main,
    of_chats,
    run,
)
import public_requests
from public_requests import Answer, Refused, Request

# Statuses of batches that have ended, and how often one is asked for its status at most.
ENDS = ("completed", "failed", "cancelled", "expired")
MAX_ROUNDS = 100_000


def client(context: Context, is_strict: bool = True) -> OpenAI:
    base_url = f"{context.base_url}/v1"
    return OpenAI(base_url=base_url, api_key="none", max_retries=0, _strict_response_validation=is_strict)


def completions(context: Context) -> None:
    # Its own type of a streamed completion has no place for a text that goes on.
    strict, lenient = client(context), client(context, is_strict=False)
    for _ in range(context.draws):
        request = draw(context)
        expected = run(context, request)
        options = {"model": context.model, "prompt": request.text, **request.openai()}
        choice = strict.completions.create(**options).choices[0]
        assert (choice.text, choice.finish_reason) == expected, (request, choice, expected)
        chunks = list(lenient.completions.create(**options, stream=True))
        streamed = "".join(chunk.choices[0].text for chunk in chunks)
        assert (streamed, chunks[-1].choices[0].finish_reason) == expected, (request, streamed, expected)


@of_chats
def chats(context: Context) -> None:
    strict = client(context)
    for _ in range(context.draws):
        request = draw(context)
        messages = conversation(request)
        expected = chat(context, request, messages)
        options: dict[str, Any] = {"model": context.model, "messages": messages, **request.openai()}
        whole = strict.chat.completions.create(**options)
        assert whole.choices[0].message.content == expected, (request, whole, expected)
        # The client's own `stream` takes a text that was cut for an error.
        *chunks, last = strict.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert streamed == expected, (request, streamed, expected)
        assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
        assert last.usage and whole.usage and last.usage.completion_tokens == whole.usage.completion_tokens


@of_chats
def thoughts(context: Context) -> None:
    strict = client(context)
    for request, system, user, budget, expected in drawn_thoughts(context):
        arguments = request.openai()
        arguments["extra_body"] |= {"enable_thinking": True, "max_thinking_tokens": budget}
        options: dict[str, Any] = {"model": context.model, "messages": [system, user], **arguments}
        whole = strict.chat.completions.create(**options)
        message = whole.choices[0].message
        found = getattr(message, "reasoning_content", ""), message.content
        assert found == expected, (request, found, expected)
        assert whole.usage and whole.usage.completion_tokens_details, whole
        assert (whole.usage.completion_tokens_details.reasoning_tokens or 0) <= budget, whole
        deltas = [chunk.choices[0].delta for chunk in strict.chat.completions.create(**options, stream=True)]
        reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        assert (reasoning, "".join(delta.content or "" for delta in deltas)) == expected, (request, deltas)


def embeddings(context: Context) -> None:
    texts = [draw(context).text for _ in range(2)]
    numbers = client(context).embeddings.create(model=context.model, input=texts, encoding_format="float")
    # Without a format it asks for base64 and decodes it, which its type does not say.
    decoded = client(context, is_strict=False).embeddings.create(model=context.model, input=texts)
    for one, other in zip(numbers.data, decoded.data, strict=True):
        assert len(one.embedding) > 1
        assert all(abs(a - b) <= 1e-6 * abs(a) for a, b in zip(one.embedding, other.embedding, strict=True))


def models(context: Context) -> None:
    strict = client(context)
    assert context.model in [model.id for model in strict.models.list()]
    assert strict.models.retrieve(context.model).id == context.model


def refusals(context: Context) -> None:
    strict = client(context)
    try:
        strict.completions.create(model="absent", prompt="a")
        raise AssertionError("there is no such model")
    except NotFoundError as error:
        assert error.code == "model_not_found", error
    try:
        strict.completions.create(model=context.model, prompt="a", temperature=-1)
        raise AssertionError("it is negative")
    except BadRequestError as error:
        assert (error.param, error.type) == ("temperature", "invalid_request_error"), error


def batches(context: Context) -> None:
    strict = client(context)
    drawn = [draw(context) for _ in range(context.draws)]
    bodies: list[dict[str, Any]] = []
    for request in drawn:
        options = request.openai()
        del options["extra_body"]
        bodies.append({"model": context.model, "prompt": request.text, **options})
    bodies.append({"model": context.model, "prompt": "a", "temperature": -1})
    lines = [
        json.dumps({"custom_id": f"r{key}", "method": "POST", "url": "/v1/completions", "body": body})
        for key, body in enumerate(bodies)
    ]
    content = "\n".join(lines).encode()
    file = strict.files.create(file=("requests.jsonl", content), purpose="batch")
    assert (file.filename, file.bytes, file.purpose) == ("requests.jsonl", len(content), "batch"), file
    assert strict.files.content(file.id).content == content
    batch = strict.batches.create(
        input_file_id=file.id, endpoint="/v1/completions", completion_window="24h", metadata={"draws": "all"}
    )
    batch = ended(strict, batch.id)
    assert batch.status == "completed" and batch.metadata == {"draws": "all"}, batch
    counts = batch.request_counts
    assert counts and (counts.total, counts.completed, counts.failed) == (len(lines), len(drawn), 1), batch
    assert batch.output_file_id and batch.error_file_id, batch
    answers = strict.files.content(batch.output_file_id).text.splitlines()
    found = {answer["custom_id"]: answer["response"]["body"] for answer in map(json.loads, answers)}
    for key, body in enumerate(bodies[:-1]):
        plain = strict.completions.create(**body).choices[0]
        assert found[f"r{key}"]["choices"][0]["text"] == plain.text, (body, plain)
    (error,) = map(json.loads, strict.files.content(batch.error_file_id).text.splitlines())
    assert error["response"]["status_code"] == 400, error
    assert batch.id in [other.id for other in strict.batches.list(limit=1)]
    listed = [other.id for other in strict.files.list(purpose="batch_output")]
    assert batch.output_file_id in listed and file.id not in listed, listed
    for kept in (file.id, batch.output_file_id, batch.error_file_id):
        assert strict.files.delete(kept).deleted
    try:
        strict.files.retrieve(file.id)
        raise AssertionError("it was deleted")
    except NotFoundError as error:
        assert error.code == "not_found", error


def ended(strict: OpenAI, batch_id: str) -> Batch:
    for _ in range(MAX_ROUNDS):
        batch = strict.batches.retrieve(batch_id)
        if batch.status in ENDS:
            return batch
    raise AssertionError(f"it does not end: {batch}")


@of_chats
def tools(context: Context) -> None:
    strict = client(context)
    for index in range(context.calls):
        offered = draw_tools(context)
        seed = context.random.randrange(2**31)
        options: dict[str, Any] = {"model": context.model, "seed": seed, "temperature": 1, "max_tokens": 1000}
        options |= {"tools": [tool.openai() for tool in offered.values()]}
        messages: list[Any] = conversation(draw(context))
        called = {**options, "messages": messages, "tool_choice": "required", "parallel_tool_calls": False}
        if index % 2:
            with strict.chat.completions.stream(**called) as stream:
                choice = stream.get_final_completion().choices[0]
        else:
            choice = strict.chat.completions.create(**called).choices[0]
        assert choice.finish_reason == "tool_calls" and choice.message.tool_calls, (seed, choice)
        (call,) = choice.message.tool_calls
        offered[call.function.name].arguments.model_validate_json(call.function.arguments)
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        history = [*messages, choice.message.to_dict(), result]
        answer = strict.chat.completions.create(
            **{**options, "messages": history, "tool_choice": "none", "max_tokens": 4}
        )
        assert answer.choices[0].message.content is not None, answer


@of_chats
def formats(context: Context) -> None:
    strict = client(context)
    for _ in range(context.draws):
        schema = draw_arguments(context, "answer")
        request = {
            "model": context.model,
            "messages": conversation(draw(context)),
            "temperature": 1,
            "max_tokens": 1000,
        }
        parsed = strict.chat.completions.parse(**request, seed=context.random.randrange(2**31), response_format=schema)
        assert isinstance(parsed.choices[0].message.parsed, schema), parsed
        assert json.loads(parsed.choices[0].message.content or "")


@of_chats
def requests_of_others(context: Context) -> None:
    strict = client(context)

    def send(request: Request, seed: int, is_streamed: bool) -> Answer:
        arguments = {"model": context.model, **chat_arguments(request, seed)}
        try:
            return answer_of(strict.chat.completions.create(**arguments, stream=is_streamed), is_streamed)
        except BadRequestError as error:
            raise Refused(error.status_code, f"{error.param} {error.message}") from error

    public_requests.check(context, send, "tools[0].function.parameters")


def chat_arguments(request: Request, seed: int) -> dict[str, Any]:
    body = {"temperature": 1, "seed": seed, **(request.options or {})}
    body |= {"messages": [chat_message(message) for message in request.messages], "max_tokens": request.limit}
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    if request.choice:
        body["tool_choice"] = chat_choice(request.choice)
    if request.format:
        schema = {"type": "json_schema", "json_schema": request.format}
        body["response_format"] = {"type": "json_object"} if request.format == "json" else schema
    # Fields that the client does not know, and those whose types it would change.
    return {"extra_body": body | request.more("openai"), "messages": body["messages"]}


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {name: call[name] for name in ("name", "arguments") if name in call},
        }
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def chat_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    named = [{"type": "function", "function": {"name": name}} for name in choice.get("among", [choice.get("name")])]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}} if "among" in choice else named[0]


def answer_of(given: Any, is_streamed: bool) -> Answer:
    if not is_streamed:
        (choice,) = given.choices
        calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
        return Answer(choice.message.content or "", calls, choice.finish_reason == "length")
    answer, pieces = Answer(""), {}
    for chunk in given:
        (choice,) = chunk.choices
        answer.text += choice.delta.content or ""
        for call in choice.delta.tool_calls or []:
            name, arguments = pieces.get(call.index, ("", ""))
            pieces[call.index] = (name + (call.function.name or ""), arguments + (call.function.arguments or ""))
        answer.is_cut = choice.finish_reason == "length"
    answer.calls = list(pieces.values())
    return answer


if __name__ == "__main__":
    main([completions, chats, thoughts, embeddings, models, refusals, batches, tools, formats, requests_of_others])
