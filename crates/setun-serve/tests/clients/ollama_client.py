"""The official client of Ollama's API."""

from __future__ import annotations

import json
from typing import Any

from ollama import ChatResponse, Client, ResponseError

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


def texts(context: Context) -> None:
    client = Client(context.base_url)
    for _ in range(context.draws):
        request = draw(context)
        text, reason = run(context, request)
        options: dict[str, Any] = {
            "model": context.model,
            "prompt": request.text,
            "raw": True,
            "options": request.ollama(),
        }
        whole = client.generate(**options)
        assert (whole.response, whole.done, whole.done_reason) == (text, True, reason), (request, whole, text)
        assert whole.eval_count and whole.total_duration and whole.total_duration >= (whole.eval_duration or 0)
        parts = list(client.generate(**options, stream=True))
        assert "".join(part.response or "" for part in parts) == text, (request, parts, text)
        assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True], parts
        assert (parts[-1].done_reason, parts[-1].eval_count) == (reason, whole.eval_count), parts


@of_chats
def chats(context: Context) -> None:
    client = Client(context.base_url)
    for _ in range(context.draws):
        request = draw(context)
        messages = conversation(request)
        expected = chat(context, request, messages)
        options: dict[str, Any] = {
            "model": f"{context.model}:latest",
            "messages": messages,
            "options": request.ollama(),
        }
        whole = client.chat(**options, think=False, keep_alive="5m")
        assert whole.message.content == expected, (request, whole, expected)
        streamed = "".join(part.message.content or "" for part in client.chat(**options, stream=True))
        assert streamed == expected, (request, streamed, expected)
        system, user = messages
        prompt = {"system": system["content"], "prompt": user["content"], "options": request.ollama()}
        assert client.generate(model=context.model, **prompt).response == expected


@of_chats
def thoughts(context: Context) -> None:
    client = Client(context.base_url)
    for request, system, user, budget, expected in drawn_thoughts(context):
        options = {**request.ollama(), "max_thinking_tokens": budget}
        asked: dict[str, Any] = {"model": context.model, "messages": [system, user], "options": options, "think": True}
        whole = client.chat(**asked).message
        assert (whole.thinking or "", whole.content) == expected, (request, whole, expected)
        parts = [part.message for part in client.chat(**asked, stream=True)]
        reasoning = "".join(part.thinking or "" for part in parts)
        assert (reasoning, "".join(part.content or "" for part in parts)) == expected, (request, parts)
        prompt = {"system": system["content"], "prompt": user["content"], "options": options, "think": True}
        generated = client.generate(model=context.model, **prompt)
        assert (generated.thinking or "", generated.response) == expected, (request, generated, expected)


def embeddings(context: Context) -> None:
    client = Client(context.base_url)
    texts = [draw(context).text for _ in range(2)]
    both = client.embed(model=context.model, input=texts).embeddings
    assert list(client.embed(model=context.model, input=texts[1]).embeddings) == [both[1]]
    assert all(abs(sum(value * value for value in vector) - 1) < 1e-3 for vector in both)
    older = client.embeddings(model=context.model, prompt=texts[0]).embedding
    length = sum(value * value for value in older) ** 0.5
    assert all(abs(value / length - one) < 1e-4 for value, one in zip(older, both[0], strict=True))


def models(context: Context) -> None:
    client = Client(context.base_url)
    for listed in (client.list().models, client.ps().models):
        assert f"{context.model}:latest" in [model.model for model in listed], listed
        assert all(model.size and model.digest for model in listed), listed
    shown = client.show(context.model)
    assert "completion" in (shown.capabilities or []), shown
    assert ("tools" in (shown.capabilities or [])) == context.has_chat, shown
    info = dict(shown.modelinfo or {})
    architecture = info["general.architecture"]
    sizes = ["context_length", "embedding_length", "block_count"]
    assert all(info[f"{architecture}.{size}"] > 0 for size in sizes), info
    assert info["general.parameter_count"] > 0, info
    details = shown.details
    assert details and details.parameter_size and details.quantization_level, shown
    assert (details.family, details.families) == (architecture, [architecture]), shown
    assert bool(shown.template) == context.has_chat, shown
    assert f"num_ctx {info[f'{architecture}.context_length']}" in " ".join((shown.parameters or "").split()), shown
    loaded = client.generate(model=context.model)
    assert (loaded.response, loaded.done_reason) == ("", "load"), loaded


def refusals(context: Context) -> None:
    client = Client(context.base_url)
    requests: list[tuple[int, Any]] = [
        (404, lambda: client.generate(model="absent", prompt="a")),
        (400, lambda: client.generate(model=context.model, prompt="a", suffix="b")),
        (400, lambda: client.generate(model=context.model, prompt="a", options={"temperature": -1})),
        (400, lambda: list(client.generate(model=context.model, prompt="a", images=["aGk="], stream=True))),
        (403, lambda: client.pull("absent")),
    ]
    for status, request in requests:
        try:
            request()
            raise AssertionError(f"expected {status}")
        except ResponseError as error:
            assert error.status_code == status and error.error, error


@of_chats
def tools(context: Context) -> None:
    client = Client(context.base_url)
    for index in range(context.calls):
        offered = draw_tools(context)
        seed = context.random.randrange(2**31)
        messages: list[Any] = conversation(draw(context))
        body: dict[str, Any] = {
            "model": context.model,
            "options": {"seed": seed, "temperature": 1, "num_predict": 1000},
            "tools": [tool.openai() for tool in offered.values()],
            "parallel_tool_calls": False,
        }
        # The client has no argument for the choice of a tool, which a model of random weights needs.
        request = {**body, "messages": messages, "tool_choice": "required", "stream": index % 2 == 1}
        if index % 2:
            answers = list(client._request(ChatResponse, "POST", "/api/chat", json=request, stream=True))
        else:
            answers = [client._request(ChatResponse, "POST", "/api/chat", json=request)]
        calls = [call for answer in answers for call in answer.message.tool_calls or []]
        assert len(calls) == 1 and answers[-1].done_reason == "stop", (seed, answers)
        function = calls[0].function
        offered[function.name].arguments.model_validate_json(json.dumps(function.arguments))
        message = next(answer.message for answer in answers if answer.message.tool_calls)
        history = [*messages, message, {"role": "tool", "tool_name": function.name, "content": "sunny"}]
        options = {**body["options"], "num_predict": 4}
        answer = client.chat(model=context.model, messages=history, options=options)
        assert answer.done and answer.message.content is not None, answer


@of_chats
def formats(context: Context) -> None:
    client = Client(context.base_url)
    for index in range(context.draws):
        schema = draw_arguments(context, "answer")
        options = {"seed": context.random.randrange(2**31), "temperature": 1, "num_predict": 1000}
        request: dict[str, Any] = {"model": context.model, "options": options, "format": schema.model_json_schema()}
        if index % 2:
            text = client.chat(**request, messages=conversation(draw(context))).message.content
        else:
            text = client.generate(**request, prompt=draw(context).text).response
        schema.model_validate_json(text or "")


@of_chats
def requests_of_others(context: Context) -> None:
    client = Client(context.base_url)

    def send(request: Request, seed: int, is_streamed: bool) -> Answer:
        body = {"model": context.model, **chat_body(request, seed), "stream": is_streamed}
        try:
            # The client has no arguments for the choice of a tool and for nulls.
            given = client._request(ChatResponse, "POST", "/api/chat", json=body, stream=is_streamed)
            return answer_of(list(given) if is_streamed else [given])
        except ResponseError as error:
            raise Refused(error.status_code, error.error) from error

    public_requests.check(context, send, "parameters of the tool `charge`")


def chat_body(request: Request, seed: int) -> dict[str, Any]:
    options = {"temperature": 1, "seed": seed, **(request.options or {}), "num_predict": request.limit}
    body: dict[str, Any] = {"messages": [chat_message(message) for message in request.messages], "options": options}
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    if request.choice:
        names = None if isinstance(request.choice, str) else request.choice.get("among", [request.choice.get("name")])
        body["tool_choice"] = {"type": "function", "function": {"name": names[0]}} if names else request.choice
    if request.format:
        body["format"] = "json" if request.format == "json" else request.format["schema"]
    return body | request.more("ollama")


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Ollama has it: arguments are objects, contents text, and results have the tool's name."""
    content = message.get("content")
    if isinstance(content, list):
        message = {**message, "content": "\n".join(part["text"] for part in content)}
    if message["role"] == "tool":
        return {**message, "tool_name": "now"}
    if not message.get("tool_calls"):
        return message
    calls = []
    for call in message["tool_calls"]:
        function = {name: call[name] for name in ("name", "arguments") if name in call}
        if function.get("arguments", "").strip() if isinstance(function.get("arguments"), str) else False:
            function["arguments"] = json.loads(function["arguments"])
        calls.append({"function": function})
    return {**message, "tool_calls": calls}


def answer_of(parts: list[ChatResponse]) -> Answer:
    calls = [call.function for part in parts for call in part.message.tool_calls or []]
    read = [(function.name, json.dumps(dict(function.arguments))) for function in calls]
    return Answer("".join(part.message.content or "" for part in parts), read, parts[-1].done_reason == "length")


if __name__ == "__main__":
    main([texts, chats, thoughts, embeddings, models, refusals, tools, formats, requests_of_others])
