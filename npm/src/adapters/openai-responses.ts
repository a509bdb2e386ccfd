/** `responses.create`: the parameters as options, and the events of the answer. */

import { type AdapterModel, type ChatMessage, type GenerationResult, newId, type TextDelta } from "./core.js";
import { logprobsOf } from "./openai-chat.js";
import { refused } from "./openai-errors.js";
import { formatOf, optionsOf, partsOf, toolsOf } from "./openai-params.js";
import type {
  ModelResponse,
  OutputCall,
  OutputMessage,
  OutputReasoning,
  OutputText,
  ResponseEvent,
  ResponseInputItem,
  ResponseLogprob,
  ResponseParams,
  ResponseTool,
  ResponseToolChoice,
} from "./openai-response-types.js";
import type { TokenLogprobs, TopLogprob } from "./openai-types.js";
import { type BlockStep, Blocks, type Step, stepsOf } from "./steps.js";

const LOGPROBS = "message.output_text.logprobs";

/** Starts a request. @throws {APIError} */
export function startResponse(
  name: string,
  model: AdapterModel,
  params: ResponseParams,
  signal: AbortSignal,
) {
  const { input, instructions, tools, tool_choice, text, max_tool_calls: _, ...rest } = params;
  const { include, top_logprobs, truncation, reasoning, ...others } = rest;
  const other = include?.find((entry) => entry !== LOGPROBS);
  if (other !== undefined) throw refused("include", `expected ${LOGPROBS}, found ${other}`);
  if (truncation === "auto") throw refused("truncation", "expected disabled: use context_overflow");
  if (text?.verbosity !== undefined && text.verbosity !== null)
    throw refused("text.verbosity", "not supported: the model has no verbosity");
  const wantsLogprobs = include?.includes(LOGPROBS) || typeof top_logprobs === "number";
  const { format } = text ?? {};
  const generation = model.chat(messagesOf(params), {
    ...optionsOf(others),
    ...(reasoning?.effort && { reasoningEffort: reasoning.effort }),
    ...formatOf(format?.type === "json_schema" ? { type: format.type, json_schema: format } : format),
    ...toolsOf(nested(tools), nestedChoice(tool_choice)),
    ...(wantsLogprobs && { logprobs: true, topLogprobs: top_logprobs ?? 0 }),
    signal,
  });
  return {
    generations: [generation],
    whole: () => whole(chunks(name, params, stepsOf([generation]))),
    chunks: (steps: AsyncIterable<Step>) => chunks(name, params, steps),
  };
}

/** Tools of responses are flat; those of chats are nested. */
function nested(tools: ResponseParams["tools"]) {
  return tools?.map((tool) => {
    const { type, name, description, parameters, strict } = tool as ResponseTool;
    const rest = { ...(description && { description }), ...(parameters && { parameters }) };
    return type === "function" ? { type, function: { name, ...rest, strict } } : { type };
  });
}

function nestedChoice(choice: ResponseParams["tool_choice"]) {
  if (choice === undefined || choice === null || typeof choice === "string") return choice;
  const { type, name } = choice as Exclude<ResponseToolChoice, string>;
  return type === "function" ? { type, function: { name } } : { type };
}

function messagesOf({ input = "", instructions }: ResponseParams): ChatMessage[] {
  const messages: ChatMessage[] = instructions ? [{ role: "system", content: instructions }] : [];
  if (typeof input === "string") return [...messages, { role: "user", content: input }];
  for (const [index, item] of input.entries()) addItem(messages, item, `input[${index}]`);
  return messages;
}

function addItem(messages: ChatMessage[], item: ResponseInputItem, at: string): void {
  const { type = "message", role, content, call_id, name, output } = item;
  const texts = (given: unknown) =>
    typeof given === "string" ? given : partsOf(Array.isArray(given) ? given : [{ type: typeof given }], at);
  if (type === "message" && role !== undefined) {
    const thoughts = role === "assistant" && isThoughts(messages.at(-1)) && messages.pop();
    messages.push({ ...thoughts, role: role === "developer" ? "system" : role, content: texts(content) });
  } else if (type === "function_call") {
    const call = { id: call_id, type: "function", function: { name, arguments: item.arguments } };
    // Calls of one turn are one message.
    const last = messages.at(-1);
    if (last?.role === "assistant")
      messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
    else messages.push({ role: "assistant", content: null, tool_calls: [call] });
  } else if (type === "function_call_output") {
    messages.push({ role: "tool", tool_call_id: call_id, content: texts(output) });
  } else if (type === "reasoning") {
    const parts = [content, item.summary].flatMap((parts) => (Array.isArray(parts) ? parts : []));
    const reasoning_content = parts.map(({ text = "" }) => text).join("");
    if (reasoning_content !== "") messages.push({ role: "assistant", content: "", reasoning_content });
  } else {
    throw refused(at, `expected a message, a function call or its output, found the type ${type}`);
  }
}

/** Whether a message has reasoning alone, which belongs to the next one. */
function isThoughts(message: ChatMessage | undefined): boolean {
  return message?.reasoning_content !== undefined && message.content === "" && !message.tool_calls;
}

/** The answer without a stream: the response of its last event. */
async function whole(events: AsyncIterable<ResponseEvent>): Promise<ModelResponse> {
  let last: ModelResponse | undefined;
  for await (const event of events) if ("response" in event) last = event.response;
  return last as ModelResponse;
}

/** The events of an answer. */
async function* chunks(
  name: string,
  params: ResponseParams,
  steps: AsyncIterable<Step>,
): AsyncGenerator<ResponseEvent> {
  const answer = new Answer(name, params);
  let sequence_number = 0;
  const numbered = (event: object) => ({ ...event, sequence_number: sequence_number++ }) as ResponseEvent;
  for (const event of answer.begin()) yield numbered(event);
  for await (const { delta, result } of steps)
    for (const event of delta ? answer.add(delta) : answer.end(result)) yield numbered(event);
}

/** A response that grows, and its events. */
class Answer {
  readonly #response: ModelResponse;
  readonly #blocks = new Blocks();
  /** Those that the next piece of a text brings: a token may have no text of its own. */
  #logprobs: ResponseLogprob[] = [];

  constructor(model: string, params: ResponseParams) {
    this.#response = emptyResponse(model, params);
  }

  begin(): object[] {
    const types = ["response.created", "response.in_progress"];
    return types.map((type) => ({ type, response: structuredClone(this.#response) }));
  }

  *add(delta: TextDelta): Generator<object> {
    if (!delta.toolCalls?.length) this.#logprobs.push(...logprobsOf([delta]).content.map(withAllBytes));
    for (const step of this.#blocks.add(delta)) yield* this.#events(step, "completed");
  }

  *end({ finishReason, usage }: GenerationResult): Generator<object> {
    const isCut = ["length", "timeout", "content_filter"].includes(finishReason);
    const status = isCut ? "incomplete" : "completed";
    for (const step of this.#blocks.end()) yield* this.#events(step, status);
    const reason = finishReason === "content_filter" ? "content_filter" : "max_output_tokens";
    const { promptTokens, completionTokens, totalTokens, cachedTokens, reasoningTokens } = usage;
    Object.assign(this.#response, {
      status,
      completed_at: Math.floor(Date.now() / 1000),
      incomplete_details: isCut ? { reason } : null,
      usage: {
        input_tokens: promptTokens,
        input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
        output_tokens: completionTokens,
        output_tokens_details: { reasoning_tokens: reasoningTokens },
        total_tokens: totalTokens,
      },
    });
    yield { type: `response.${status}`, response: structuredClone(this.#response) };
  }

  /** The events of a step. `status` is that of an item which it ends. */
  *#events(step: BlockStep, status: "completed" | "incomplete"): Generator<object> {
    const { index: output_index, call, isReasoning } = step.block;
    if (step.type === "begin") {
      const item = call ? callOf(call) : isReasoning ? emptyReasoning() : emptyMessage();
      this.#response.output.push(item);
      yield { type: "response.output_item.added", output_index, item: structuredClone(item) };
    }
    const item = this.#response.output[output_index] as ModelResponse["output"][number];
    const place = { item_id: item.id, output_index };
    if (item.type === "reasoning") yield* this.#reasoningEvents(step, item, { ...place, content_index: 0 });
    else if (item.type === "message") yield* this.#textEvents(step, item, { ...place, content_index: 0 });
    else yield* this.#callEvents(step, item, place);
    if (step.type !== "end") return;
    item.status = status;
    yield { type: "response.output_item.done", output_index, item: structuredClone(item) };
  }

  *#reasoningEvents(step: BlockStep, { content }: OutputReasoning, place: object): Generator<object> {
    const type = "response.reasoning_text";
    const part = { type: "reasoning_text" as const, text: step.block.text };
    content[0] = part;
    if (step.type === "begin") yield { type: "response.content_part.added", ...place, part };
    else if (step.type === "delta") yield { type: `${type}.delta`, ...place, delta: step.delta };
    else {
      yield { type: `${type}.done`, ...place, text: part.text };
      yield { type: "response.content_part.done", ...place, part };
    }
  }

  *#textEvents(step: BlockStep, { content }: OutputMessage, place: object): Generator<object> {
    if (step.type === "begin") {
      content.push({ type: "output_text", text: "", annotations: [], logprobs: [] });
      yield { type: "response.content_part.added", ...place, part: structuredClone(content[0]) };
      return;
    }
    const [part] = content as [OutputText];
    const delta = step.type === "delta" ? step.delta : "";
    const logprobs = this.#logprobs.splice(0);
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.#response.output_text += delta;
    if (delta !== "" || logprobs.length > 0)
      yield { type: "response.output_text.delta", ...place, delta, logprobs };
    if (step.type === "delta") return;
    yield { type: "response.output_text.done", ...place, text: part.text, logprobs: part.logprobs };
    yield { type: "response.content_part.done", ...place, part: structuredClone(part) };
  }

  *#callEvents(step: BlockStep, item: OutputCall, place: object): Generator<object> {
    this.#logprobs = []; // those of calls are no part of a text
    item.arguments = step.block.text;
    const type = "response.function_call_arguments";
    if (step.type === "delta") yield { type: `${type}.delta`, ...place, delta: step.delta };
    const { name, arguments: text } = item;
    if (step.type === "end") yield { type: `${type}.done`, ...place, name, arguments: text };
  }
}

function emptyMessage(): OutputMessage {
  return { type: "message", id: newId("msg_"), role: "assistant", status: "in_progress", content: [] };
}

function emptyReasoning(): OutputReasoning {
  return { type: "reasoning", id: newId("rs_"), status: "in_progress", summary: [], content: [] };
}

function callOf({ id: call_id, name }: { readonly id: string; readonly name: string }): OutputCall {
  return { type: "function_call", id: newId("fc_"), status: "in_progress", call_id, name, arguments: "" };
}

/** Parts of characters have no bytes here: the type of the API has no `null`. */
function withAllBytes({ top_logprobs, ...token }: TokenLogprobs): ResponseLogprob {
  const withBytes = (top: TopLogprob) => ({ ...top, bytes: top.bytes ?? [] });
  return { ...withBytes(token), top_logprobs: top_logprobs.map(withBytes) };
}

function emptyResponse(model: string, params: ResponseParams): ModelResponse {
  const { instructions = null, metadata, parallel_tool_calls, temperature = null, top_p = null } = params;
  return {
    id: newId("resp_"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    completed_at: null,
    status: "in_progress",
    model,
    output: [],
    output_text: "",
    error: null,
    incomplete_details: null,
    instructions,
    metadata: (metadata ?? null) as ModelResponse["metadata"],
    parallel_tool_calls: parallel_tool_calls ?? true,
    temperature,
    top_p,
    max_output_tokens: params.max_output_tokens ?? null,
    previous_response_id: null,
    store: false,
    text: { format: params.text?.format ?? { type: "text" } },
    tool_choice: (params.tool_choice ?? "auto") as ResponseToolChoice,
    tools: (params.tools ?? []) as ResponseTool[],
    truncation: "disabled",
    access_programs: null,
  };
}
