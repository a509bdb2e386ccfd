"""LangChain's client of OpenAI's API."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from common import Context, Draw, chat, conversation, draw, draw_arguments, draw_tools, main, of_chats, run


def settings(context: Context) -> dict[str, Any]:
    return {"base_url": f"{context.base_url}/v1", "api_key": "none", "model": context.model, "max_retries": 0}


def completions(context: Context) -> None:
    request = draw(context)
    text, _ = run(context, request)
    model = OpenAI(**settings(context), **request.openai())
    assert model.invoke(request.text) == text, (request, text)
    assert "".join(model.stream(request.text)) == text, (request, text)


@of_chats
def chats(context: Context) -> None:
    request = draw(context)
    messages = conversation(request)
    expected = chat(context, request, messages)
    model = chat_model(context, request)
    assert model.invoke(messages).content == expected, (request, expected)
    assert "".join(str(chunk.content) for chunk in model.stream(messages)) == expected, (request, expected)


def chat_model(context: Context, request: Draw) -> ChatOpenAI:
    return ChatOpenAI(**settings(context), use_responses_api=False, **request.openai())


def embeddings(context: Context) -> None:
    # Without its own count of tokens, for which it would download a tokenizer.
    model = OpenAIEmbeddings(**settings(context), check_embedding_ctx_length=False)
    one, other = model.embed_documents(["A cat", "A dog"])
    assert len(one) == len(other) > 1 and one != other
    assert model.embed_query("A cat") == one


@of_chats
def tools(context: Context) -> None:
    for index in range(context.calls):
        offered = draw_tools(context)
        seed = context.random.randrange(2**31)
        model = chat_model(context, Draw("", {"seed": seed, "temperature": 1, "max_tokens": 1000}))
        bound = model.bind_tools(
            [tool.openai() for tool in offered.values()], tool_choice="any", parallel_tool_calls=False
        )
        messages = conversation(draw(context))
        if index % 2:
            chunks = list(bound.stream(messages))
            answer: Any = sum(chunks[1:], chunks[0])
        else:
            answer = bound.invoke(messages)
        (call,) = answer.tool_calls
        assert not answer.invalid_tool_calls, (seed, answer)
        offered[call["name"]].arguments.model_validate(call["args"])


@of_chats
def formats(context: Context) -> None:
    schema = draw_arguments(context, "answer")
    request = Draw("", {"seed": context.random.randrange(2**31), "temperature": 1, "max_tokens": 1000})
    model = chat_model(context, request).with_structured_output(schema, method="json_schema")
    assert isinstance(model.invoke(conversation(draw(context))), schema)


if __name__ == "__main__":
    main([completions, chats, embeddings, tools, formats])
