"""Libraries of agents: each ends a turn with a call of a tool and its result, a structured output, and a stream.

The model has random weights. A tool is called because the library says that one has to be, and a text ends because a bias
makes its end likely.
"""

import asyncio
import json
import os
from typing import Any, Literal

# They count their uses elsewhere, unless they are told not to, and litellm fetches a table.
os.environ |= {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1"}

from pydantic import BaseModel

from common import Context, main, of_chats

City = Literal["Oslo", "Rome"]

END_OF_TEXT = 2


class Report(BaseModel):
    """What an answer has to be."""

    city: City
    is_wet: bool


class Weather:
    """A tool, and what it was called with."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def tell(self, city: City) -> str:
        """Tells the weather of a city."""
        self.cities.append(city)
        return f"grey in {city}"

    def assert_called(self) -> None:
        assert self.cities and set(self.cities) <= {"Oslo", "Rome"}, self.cities


def sampling(context: Context) -> dict[str, Any]:
    """Options that are no argument of a library: a text has some tokens and then ends."""
    return {"seed": context.random.randrange(2**31), "min_tokens": 6, "logit_bias": {str(END_OF_TEXT): 100}}


def address(context: Context) -> dict[str, Any]:
    return {"base_url": f"{context.base_url}/v1", "api_key": "none"}


@of_chats
def openai_agents(context: Context) -> None:
    """Over chats and over responses."""
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
    from openai import AsyncOpenAI

    client = AsyncOpenAI(**address(context))

    async def run(kind: Any) -> None:
        weather = Weather()
        settings = ModelSettings(tool_choice="required", max_tokens=300, extra_body=sampling(context))
        offered = [function_tool(weather.tell, name_override="weather")]
        shared: dict[str, Any] = {"model": kind(model=context.model, openai_client=client), "model_settings": settings}
        agent = Agent(name="a", instructions="Be brief.", tools=offered, **shared)
        # Once a tool was called it may be left.
        assert isinstance((await Runner.run(agent, "Rain?", max_turns=5)).final_output, str)
        weather.assert_called()
        streamed = Runner.run_streamed(agent, "Rain?", max_turns=5)
        kinds = {event.type async for event in streamed.stream_events()}
        assert {"raw_response_event", "run_item_stream_event"} <= kinds and streamed.final_output, kinds
        typed = Agent(name="b", output_type=Report, model=shared["model"], model_settings=ModelSettings(extra_body=sampling(context)))
        assert isinstance((await Runner.run(typed, "Rain?")).final_output, Report)
        # One agent hands over to another, which answers.
        first = Agent(name="c", handoffs=[agent], **shared)
        assert (await Runner.run(first, "Rain?", max_turns=5)).last_agent is agent

    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        asyncio.run(run(kind))


@of_chats
def instructor_library(context: Context) -> None:
    import instructor
    from openai import OpenAI

    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(OpenAI(**address(context)), mode=mode)
        asked: dict[str, Any] = {"model": context.model, "messages": [{"role": "user", "content": "Rain?"}], "max_retries": 0}
        asked |= {"max_tokens": 300, "extra_body": sampling(context)}
        assert isinstance(client.create(response_model=Report, **asked), Report)
        *_, last = client.create_partial(response_model=Report, **asked)
        Report.model_validate(last.model_dump())


@of_chats
def pydantic_ai(context: Context) -> None:
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(**address(context))

    async def run(kind: Any) -> None:
        weather = Weather()
        options = sampling(context)

        def settings(step: Any) -> Any:
            return {"max_tokens": 300, "temperature": 1, "extra_body": options | {"seed": options["seed"] + step.run_step}}

        shared: dict[str, Any] = {"model": kind(context.model, provider=provider), "model_settings": settings}
        # The output is a tool, too, and one of both has to be called.
        agent = Agent(output_type=Report, tools=[weather.tell], **shared)
        for _ in range(40):
            options["seed"] += 100
            assert isinstance((await agent.run("Rain?")).output, Report)
            if weather.cities:
                break
        weather.assert_called()
        native = Agent(output_type=NativeOutput(Report), **shared)
        assert isinstance((await native.run("Rain?")).output, Report)
        async with Agent(**shared).run_stream("Rain?") as streamed:
            assert "".join([piece async for piece in streamed.stream_text(delta=True)]) == await streamed.get_output()

    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        asyncio.run(run(kind))


@of_chats
def langchain_agent(context: Context) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_model_call
    from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    weather = Weather()
    model = ChatOpenAI(model=context.model, max_tokens=300, extra_body=sampling(context), max_retries=0, **address(context))

    @wrap_model_call
    def first_a_tool(request: Any, handler: Any) -> Any:
        is_first = request.messages[-1].type == "human"
        return handler(request.override(tool_choice="any") if is_first else request)

    offered: dict[str, Any] = {"model": model, "tools": [tool("weather")(weather.tell)]}
    asked: Any = {"messages": [{"role": "user", "content": "Rain?"}]}
    agent = create_agent(**offered, middleware=[first_a_tool])
    kinds = [message.type for message in agent.invoke(asked)["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"], kinds
    weather.assert_called()
    pieces = [piece for piece, _ in agent.stream(asked, stream_mode="messages")]
    assert len(pieces) > 4, pieces
    for strategy in (ProviderStrategy(Report), ToolStrategy(Report)):
        structured = create_agent(model=model, tools=[], response_format=strategy).invoke(asked)
        assert isinstance(structured["structured_response"], Report), structured


@of_chats
def litellm_library(context: Context) -> None:
    import litellm

    shared: dict[str, Any] = {"model": f"openai/{context.model}", "max_tokens": 300, "num_retries": 0, **address(context)}
    shared |= {"extra_body": sampling(context)}
    parameters = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"]}
    offered = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    history: list[Any] = [{"role": "user", "content": "Rain?"}]
    called = litellm.completion(messages=history, tools=offered, tool_choice="required", parallel_tool_calls=False, **shared)
    message = called.choices[0].message
    (call,) = message.tool_calls
    weather = Weather()
    result = {"role": "tool", "tool_call_id": call.id, "content": weather.tell(**json.loads(call.function.arguments))}
    weather.assert_called()
    history += [message, result]
    final = litellm.completion(messages=history, tools=offered, **shared).choices[0]
    assert final.finish_reason == "stop" and final.message.content, final
    chunks = list(litellm.completion(messages=history, stream=True, **shared))
    assert litellm.stream_chunk_builder(chunks).choices[0].finish_reason == "stop", chunks
    formed = litellm.completion(messages=history, response_format=Report, **shared).choices[0]
    Report.model_validate_json(formed.message.content)
    # Its providers of other APIs.
    shared |= {"base_url": context.base_url}
    for provider in ("ollama_chat", "anthropic"):
        asked = shared | {"model": f"{provider}/{context.model}", "extra_body": None, "max_tokens": 8}
        assert litellm.completion(messages=history[:1], **asked).choices[0].message.content, provider


@of_chats
def llama_index(context: Context) -> None:
    from llama_index.core.agent.workflow import AgentStream, FunctionAgent
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    weather = Weather()
    llm = OpenAILike(
        model=context.model,
        api_base=f"{context.base_url}/v1",
        api_key="none",
        is_chat_model=True,
        is_function_calling_model=True,
        should_use_structured_outputs=True,
        max_tokens=300,
        max_retries=0,
        additional_kwargs={"extra_body": sampling(context)},
    )

    async def run() -> None:
        agent = FunctionAgent(tools=[weather.tell], llm=llm, initial_tool_choice="required")
        handler = agent.run("Rain?", max_iterations=5)
        events = [event async for event in handler.stream_events() if isinstance(event, AgentStream)]
        assert len(events) > 2 and str(await handler), events
        weather.assert_called()

    asyncio.run(run())
    asked = [ChatMessage(role="user", content="Rain?")]
    assert isinstance(llm.as_structured_llm(Report).chat(asked).raw, Report)
    *_, last = llm.stream_chat(asked)
    assert last.message.content


if __name__ == "__main__":
    main([openai_agents, instructor_library, pydantic_ai, langchain_agent, litellm_library, llama_index])
