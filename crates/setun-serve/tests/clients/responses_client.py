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


if __name__ == "__main__":
    main([responses, thoughts, logprobs, tools, formats, refusals])
