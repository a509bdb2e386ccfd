"""The official client of Anthropic's API, in its strict mode."""

from __future__ import annotations

import json
from typing import Any

from anthropic import Anthropic, BadRequestError, NotFoundError

from common import Context, Tool, conversation, draw, drawn_calls, drawn_chats, drawn_thoughts, main, of_chats
import public_requests
from public_requests import Answer, Refused, Request


def client(context: Context) -> Anthropic:
    return Anthropic(base_url=context.base_url, api_key="none", max_retries=0, _strict_response_validation=True)


def options(drawn: dict[str, Any]) -> dict[str, Any]:
    """Options as arguments of this client, which leaves those of sampling to the body."""
    others = {name: value for name, value in drawn.items() if name != "max_tokens"}
    return {"max_tokens": drawn["max_tokens"], "extra_body": others}


def tool_of(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "input_schema": tool.arguments.model_json_schema()}


@of_chats
def messages(context: Context) -> None:
    strict = client(context)
    for request, system, user, expected in drawn_chats(context):
        cached = {"type": "text", "text": system["content"], "cache_control": {"type": "ephemeral"}}
        arguments: dict[str, Any] = {"model": context.model, "system": [cached], "messages": [user]}
        whole = strict.messages.create(**arguments, **options(request.options))
        assert "".join(block.text for block in whole.content) == expected, (request, whole, expected)
        with strict.messages.stream(**arguments, **options(request.options)) as stream:
            streamed = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert streamed == expected, (request, streamed, expected)
        assert final.stop_reason == whole.stop_reason and final.usage.output_tokens == whole.usage.output_tokens
        counted = strict.messages.count_tokens(**arguments).input_tokens
        for usage in (whole.usage, final.usage):
            assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted, (usage, counted)


@of_chats
def thoughts(context: Context) -> None:
    strict = client(context)
    for request, system, user, budget, expected in drawn_thoughts(context):
        arguments: dict[str, Any] = {"model": context.model, "system": system["content"], "messages": [user]}
        arguments["thinking"] = {"type": "enabled", "budget_tokens": budget}
        whole = strict.messages.create(**arguments, **options(request.options))
        with strict.messages.stream(**arguments, **options(request.options)) as stream:
            events = list(stream)
            final = stream.get_final_message()
        for message in (whole, final):
            reasoning = "".join(block.thinking for block in message.content if block.type == "thinking")
            text = "".join(block.text for block in message.content if block.type == "text")
            assert (reasoning, text) == expected, (request, message, expected)
        assert "".join(event.thinking for event in events if event.type == "thinking") == expected[0], events
        blocks = [block.model_dump() for block in whole.content]
        again = [user, {"role": "assistant", "content": blocks}, user]
        strict.messages.count_tokens(model=context.model, messages=again)


@of_chats
def stop_sequences(context: Context) -> None:
    strict = client(context)
    arguments: dict[str, Any] = {"model": context.model, "messages": [conversation(draw(context))[1]]}
    arguments |= {"max_tokens": 40, "extra_body": {"seed": 1, "temperature": 0}}
    text = strict.messages.create(**arguments).content[0].text
    word = text[len(text) // 2 :][:3]
    stopped = strict.messages.create(**arguments, stop_sequences=[word])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word), (text, stopped)
    assert stopped.content == [] or stopped.content[0].text == text[: text.index(word)], (text, stopped)


@of_chats
def tools(context: Context) -> None:
    strict = client(context)
    for offered, seed, is_streamed in drawn_calls(context):
        request: dict[str, Any] = {"model": context.model, "extra_body": {"seed": seed, "temperature": 1}}
        # A tool that Anthropic's servers run is left out.
        search = {"type": "web_search_20250305", "name": "web_search"}
        request["tools"] = [search, *map(tool_of, offered.values())]
        begun: list[Any] = [conversation(draw(context))[1]]
        choice = {"type": "any", "disable_parallel_tool_use": True}
        called = {**request, "messages": begun, "max_tokens": 1000, "tool_choice": choice}
        if is_streamed:
            with strict.messages.stream(**called) as stream:
                message = stream.get_final_message()
        else:
            message = strict.messages.create(**called)
        assert message.stop_reason == "tool_use", (seed, message)
        (call,) = message.content
        assert call.type == "tool_use", (seed, call)
        offered[call.name].arguments.model_validate(call.input)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "broken", "is_error": True}
        history = [*begun, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
        answer = strict.messages.create(
            **{**request, "messages": history, "max_tokens": 4, "tool_choice": {"type": "none"}}
        )
        assert answer.stop_reason in ("end_turn", "max_tokens"), answer


@of_chats
def refusals(context: Context) -> None:
    strict = client(context)
    user: list[Any] = [{"role": "user", "content": "a"}]
    try:
        strict.messages.create(model="absent", messages=user, max_tokens=1)
        raise AssertionError("there is no such model")
    except NotFoundError as error:
        assert error.type == "not_found_error" and error.request_id, error
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    image: list[Any] = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    try:
        strict.messages.create(model=context.model, messages=image, max_tokens=1)
        raise AssertionError("images are refused")
    except BadRequestError as error:
        assert "messages[0].content[0].type" in error.message, error


@of_chats
def requests_of_others(context: Context) -> None:
    strict = client(context)

    def send(request: Request, seed: int, is_streamed: bool) -> Answer:
        arguments = {"model": context.model, **message_arguments(request, seed)}
        try:
            if not is_streamed:
                return answer_of(strict.messages.create(**arguments))
            # The accumulated message has the inputs that the client has read from their pieces.
            with strict.messages.stream(**arguments) as stream:
                return answer_of(stream.get_final_message())
        except BadRequestError as error:
            raise Refused(error.status_code, error.message) from error

    public_requests.check(context, send, "parameters of the tool `charge`")


def message_arguments(request: Request, seed: int) -> dict[str, Any]:
    body = {"temperature": 1, "seed": seed, **(request.options or {})}
    system = [block for message in request.messages if is_system(message) for block in blocks_of(message)]
    body |= {"system": system} if system else {}
    if request.tools:
        tools = [{"input_schema" if name == "parameters" else name: tool[name] for name in tool} for tool in request.tools]
        body["tools"] = [*request.others("anthropic"), *tools]
    if request.choice:
        choice = message_choice(request.choice)
        parallel = {} if request.parallel is None else {"disable_parallel_tool_use": not request.parallel}
        body["tool_choice"] = choice if choice["type"] == "none" else choice | parallel
    if request.format:
        schema = {"type": "object"} if request.format == "json" else request.format["schema"]
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        if is_system(message):
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        # Results are blocks of the user's message.
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": []})
        turns[-1]["content"] += blocks_of(message)
    limit = int(request.limit)  # the client computes with it
    return {"messages": turns, "max_tokens": limit, "extra_body": body | request.more("anthropic")}


def is_system(message: dict[str, Any]) -> bool:
    return message["role"] in ("system", "developer")


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    texts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}]
    uses = []
    for call in message.get("tool_calls") or []:
        use = {"type": "tool_use", "id": call["id"], "name": call["name"]}
        if "arguments" in call:
            arguments = call["arguments"]
            use["input"] = json.loads(arguments) if arguments and arguments.strip() else arguments
        uses.append(use)
    return [*texts, *uses]


def message_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": "any" if choice == "required" else choice}
    # There is no choice among some here.
    return {"type": "tool", "name": choice.get("name") or choice["among"][0]}


def answer_of(message: Any) -> Answer:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    return Answer(text, calls, message.stop_reason == "max_tokens")


if __name__ == "__main__":
    main([messages, thoughts, stop_sequences, tools, refusals, requests_of_others])
