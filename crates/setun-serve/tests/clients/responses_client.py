"""The official client of OpenAI's Responses API, in its strict mode."""

from __future__ import annotations

from typing import Any

from openai import BadRequestError, OpenAI

from common import (
    Context,
    Tool,
    conversation,
    draw,
    draw_arguments,
    drawn_calls,
    drawn_chats,
    drawn_thoughts,
    main,
    of_chats,
)
import public_requests
from public_requests import Answer, Refused, Request


def client(context: Context) -> OpenAI:
    base_url = f"{context.base_url}/v1"
    return OpenAI(base_url=base_url, api_key="none", max_retries=0, _strict_response_validation=True)


def options(drawn: dict[str, Any]) -> dict[str, Any]:
    """Options as arguments of this client, which does not know all of them."""
    names = {"max_tokens": "max_output_tokens"}
    renamed = {names.get(name, name): value for name, value in drawn.items()}
    known = {name: value for name, value in renamed.items() if name in ("max_output_tokens", "temperature", "top_p")}
    return {**known, "extra_body": {name: value for name, value in renamed.items() if name not in known}}


def function(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "parameters": tool.arguments.model_json_schema(),
        "strict": True,
    }


@of_chats
def responses(context: Context) -> None:
    strict = client(context)
    for request, system, user, expected in drawn_chats(context):
        arguments = {"model": context.model, "input": [user], "instructions": system["content"]}
        whole = strict.responses.create(**arguments, **options(request.options))
        assert whole.output_text == expected, (request, whole, expected)
        assert whole.status in ("completed", "incomplete"), whole
        with strict.responses.stream(**arguments, **options(request.options)) as stream:
            events = list(stream)
        streamed = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert streamed == expected, (request, streamed, expected)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        last = events[-1]
        assert last.type in ("response.completed", "response.incomplete"), last
        assert last.response.output_text == expected and last.response.status == whole.status
        assert last.response.usage and whole.usage and last.response.usage.total_tokens == whole.usage.total_tokens
        counted = strict.responses.input_tokens.count(**arguments)
        assert counted.input_tokens == whole.usage.input_tokens, (counted, whole.usage)


@of_chats
def thoughts(context: Context) -> None:
    strict = client(context)
    for request, system, user, budget, expected in drawn_thoughts(context):
        arguments = options(request.options)
        arguments["extra_body"] |= {"enable_thinking": True, "max_thinking_tokens": budget}
        asked: dict[str, Any] = {"model": context.model, "input": [system, user], **arguments}
        whole = strict.responses.create(**asked)
        items = [item for item in whole.output if item.type == "reasoning"]
        reasoning = "".join(part.text for item in items for part in item.content or [])
        assert (reasoning, whole.output_text) == expected, (request, whole, expected)
        assert whole.usage and whole.usage.output_tokens_details.reasoning_tokens <= budget, whole
        with strict.responses.stream(**asked) as stream:
            events = list(stream)
        reasoning = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert (reasoning, text) == expected, (request, events, expected)
        again = [user, *(item.model_dump() for item in whole.output), user]
        strict.responses.input_tokens.count(model=context.model, input=again)


@of_chats
def logprobs(context: Context) -> None:
    request = draw(context)
    drawn = options(request.options | {"repetition_penalty": 1})
    include = ["message.output_text.logprobs"]
    arguments = {"model": context.model, "input": request.text, "top_logprobs": 2, "include": include}
    (item,) = client(context).responses.create(**arguments, **drawn).output
    part = item.content[0]
    text = b"".join(bytes(token.bytes) for token in part.logprobs).decode("utf-8", "replace")
    # Where one byte of several tokens is no text, none of theirs is.
    assert "\ufffd" in part.text or part.text.strip() in text, (part.text, text)
    assert all(len(token.top_logprobs) == 2 for token in part.logprobs)


@of_chats
def tools(context: Context) -> None:
    strict = client(context)
    for offered, seed, is_streamed in drawn_calls(context):
        request: dict[str, Any] = {"model": context.model, "temperature": 1, "extra_body": {"seed": seed}}
        # What Codex offers beside functions is left out.
        request["tools"] = [{"type": "web_search"}, *map(function, offered.values())]
        messages: list[Any] = conversation(draw(context))
        called = {**request, "input": messages, "max_output_tokens": 1000}
        called |= {"tool_choice": "required", "parallel_tool_calls": False, "store": False}
        if is_streamed:
            with strict.responses.stream(**called) as stream:
                pieces = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
                response = stream.get_final_response()
        else:
            response, pieces = strict.responses.create(**called), None
        assert response.status == "completed", (seed, response)
        (call,) = response.output
        assert call.type == "function_call", (seed, call)
        assert pieces is None or "".join(pieces) == call.arguments, (pieces, call)
        offered[call.name].arguments.model_validate_json(call.arguments)
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        late = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
        history = [*messages, call.to_dict(), result, late]
        answer = strict.responses.create(**{**request, "input": history, "tool_choice": "none", "max_output_tokens": 4})
        assert answer.output[0].type == "message", answer


@of_chats
def formats(context: Context) -> None:
    for _ in range(context.draws):
        schema = draw_arguments(context, "answer")
        request = {"model": context.model, "input": draw(context).text, "temperature": 1, "max_output_tokens": 1000}
        seed = context.random.randrange(2**31)
        parsed = client(context).responses.parse(**request, extra_body={"seed": seed}, text_format=schema)
        assert isinstance(parsed.output_parsed, schema), (seed, parsed)


@of_chats
def refusals(context: Context) -> None:
    for field, value in {"previous_response_id": "resp_1", "background": True, "conversation": "conv_1"}.items():
        try:
            client(context).responses.create(**{"model": context.model, "input": "a", field: value})
            raise AssertionError(f"{field} needs stored responses")
        except BadRequestError as error:
            assert error.param == field, error


@of_chats
def requests_of_others(context: Context) -> None:
    strict = client(context)

    def send(request: Request, seed: int, is_streamed: bool) -> Answer:
        arguments = {"model": context.model, **response_arguments(request, seed)}
        try:
            given = strict.responses.create(**arguments, stream=is_streamed)
            if not is_streamed:
                return answer_of(given)
            *events, last = given
        except BadRequestError as error:
            raise Refused(error.status_code, f"{error.param} {error.message}") from error
        answer = answer_of(last.response)
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(pieces) == answer.text, (pieces, answer)
        done = [event.arguments for event in events if event.type == "response.function_call_arguments.done"]
        assert done == [arguments for _, arguments in answer.calls], (done, answer)
        return answer

    public_requests.check(context, send, "tools[0].parameters")


def response_arguments(request: Request, seed: int) -> dict[str, Any]:
    body = {"temperature": 1, "seed": seed, **(request.options or {}), "max_output_tokens": request.limit}
    items = [item for message in request.messages for item in items_of(message)]
    if request.tools:
        body["tools"] = [*request.others("responses"), *({"type": "function", **tool} for tool in request.tools)]
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    if request.choice:
        body["tool_choice"] = response_choice(request.choice)
    if request.format:
        schema = {"type": "json_schema", **request.format} if isinstance(request.format, dict) else {}
        body["text"] = {"format": schema or {"type": "json_object"}}
    return {"input": items, "extra_body": body | request.more("responses")}


def items_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message as items: calls and results are no part of a message here."""
    role, content = message["role"], message.get("content")
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [{**part, "type": kind} for part in content] if isinstance(content, list) else content
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": parts}]
    said = [{"type": "message", "role": role, "content": parts}] if content else []
    calls = message.get("tool_calls") or []
    renamed = [{"call_id" if name == "id" else name: value for name, value in call.items()} for call in calls]
    return [*said, *({"type": "function_call", **call} for call in renamed)]


def response_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    named = [{"type": "function", "name": name} for name in choice.get("among", [choice.get("name")])]
    return {"type": "allowed_tools", "mode": "required", "tools": named} if "among" in choice else named[0]


def answer_of(response: Any) -> Answer:
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    return Answer(response.output_text, calls, response.status == "incomplete")


if __name__ == "__main__":
    main([responses, thoughts, logprobs, tools, formats, refusals, requests_of_others])
