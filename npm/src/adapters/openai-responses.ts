/** `responses.create`: the parameters as options, and the events of the answer. */

import type { GenerationResult } from "./core.js";
import { type AdapterModel, type ChatMessage, type Generation, newId, type ToolCallDelta } from "./core.js";
import { logprobsOf } from "./openai-chat.js";
import { refused } from "./openai-errors.js";
import { formatOf, optionsOf, partsOf, toolsOf } from "./openai-params.js";
import type {
  ModelResponse,
  OutputCall,
  OutputMessage,
  OutputText,
  ResponseEvent,
  ResponseInputItem,
  ResponseLogprob,
  ResponseParams,
  ResponseTool,
  ResponseToolChoice,
} from "./openai-response-types.js";
import type { Step } from "./steps.js";

const MAPPED = [
  "include",
  "input",
  "instructions",
  "max_tool_calls",
  "model",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "truncation",
];

const LOGPROBS = "message.output_text.logprobs";

/** Starts the generation of a request. @throws {APIError} */
export function startResponse(model: AdapterModel, params: ResponseParams, signal: AbortSignal): Generation {
  const { include, text, truncation, top_logprobs } = params;
  const other = include?.find((entry) => entry !== LOGPROBS);
  if (other !== undefined) throw refused("include", `expected ${LOGPROBS}, found ${other}`);
  if (truncation === "auto") throw refused("truncation", "expected disabled: use context_overflow");
  if (text?.verbosity !== undefined && text.verbosity !== null)
    throw refused("text.verbosity", "not supported: the model has no verbosity");
  const wantsLogprobs = include?.includes(LOGPROBS) || typeof top_logprobs === "number";
  const { format } = text ?? {};
  return model.chat(messagesOf(params), {
    ...optionsOf(params, MAPPED),
    ...formatOf(format?.type === "json_schema" ? { type: format.type, json_schema: format } : format),
    ...toolsOf(nested(params.tools), nestedChoice(params.tool_choice)),
    ...(wantsLogprobs && { logprobs: true, topLogprobs: top_logprobs ?? 0 }),
    signal,
  });
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
    messages.push({ role: role === "developer" ? "system" : role, content: texts(content) });
  } else if (type === "function_call") {
    const call = { id: call_id, type: "function", function: { name, arguments: item.arguments } };
    // Calls of one turn are one message.
    const last = messages.at(-1);
    if (last?.role === "assistant")
      messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
    else messages.push({ role: "assistant", content: null, tool_calls: [call] });
  } else if (type === "function_call_output") {
    messages.push({ role: "tool", tool_call_id: call_id, content: texts(output) });
  } else if (type !== "reasoning") {
    throw refused(at, `expected a message, a function call or its output, found the type ${type}`);
  }
}

/** The answer without a stream: the response of its last event. */
export async function response(
  name: string,
  params: ResponseParams,
  steps: AsyncIterable<Step>,
): Promise<ModelResponse> {
  let last: ModelResponse | undefined;
  for await (const event of responseEvents(name, params, steps))
    if ("response" in event) last = event.response;
  return last as ModelResponse;
}

/** The events of an answer. */
export async function* responseEvents(
  name: string,
  params: ResponseParams,
  steps: AsyncIterable<Step>,
): AsyncGenerator<ResponseEvent, void, undefined> {
  const answer = new Answer(name, params);
  yield* answer.events([
    { type: "response.created", response: answer.snapshot() },
    { type: "response.in_progress", response: answer.snapshot() },
  ]);
  for await (const { delta, result } of steps) {
    if (result !== undefined) yield* answer.events(answer.end(result));
    else {
      const logprobs = logprobsOf([delta]).content.map((each) =>
        withBytes({ ...each, top_logprobs: each.top_logprobs.map(withBytes) }),
      );
      if (delta.text !== "" || logprobs.length > 0)
        yield* answer.events(answer.addText(delta.text, logprobs));
      for (const call of delta.toolCalls ?? []) yield* answer.events(answer.addCall(call));
    }
  }
}

/** Parts of characters have no bytes here: the type of the API has no `null`. */
function withBytes<Token extends { bytes: number[] | null }>(token: Token): Token & { bytes: number[] } {
  return { ...token, bytes: token.bytes ?? [] };
}

/** A response that grows. */
class Answer {
  readonly #response: ModelResponse;
  /** The item that grows, the last one. */
  #item: OutputMessage | OutputCall | undefined;
  #call = -1;
  #count = 0;

  constructor(model: string, params: ResponseParams) {
    this.#response = emptyResponse(model, params);
  }

  snapshot(): ModelResponse {
    return structuredClone(this.#response);
  }

  *events(events: Iterable<object>): Generator<ResponseEvent> {
    for (const event of events) yield { ...event, sequence_number: this.#count++ } as ResponseEvent;
  }

  *addText(delta: string, logprobs: ResponseLogprob[]): Generator<object> {
    if (this.#item?.type !== "message") {
      yield* this.#endItem("completed");
      const part: OutputText = { type: "output_text", text: "", annotations: [], logprobs: [] };
      const item: OutputMessage = {
        type: "message",
        id: newId("msg_"),
        role: "assistant",
        status: "in_progress",
        content: [],
      };
      yield this.#begin(item);
      item.content.push(part);
      yield { type: "response.content_part.added", ...this.#place(), part: { ...part, logprobs: [] } };
    }
    const [part] = (this.#item as OutputMessage).content as [OutputText];
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.#response.output_text += delta;
    yield { type: "response.output_text.delta", ...this.#place(), delta, logprobs };
  }

  *addCall({ index, id, name, arguments: delta }: ToolCallDelta): Generator<object> {
    if (this.#item?.type !== "function_call" || this.#call !== index) {
      yield* this.#endItem("completed");
      this.#call = index;
      const call = { call_id: id ?? newId("call_"), name: name ?? "", arguments: "" };
      yield this.#begin({ type: "function_call", id: newId("fc_"), status: "in_progress", ...call });
    }
    if (!delta) return;
    (this.#item as OutputCall).arguments += delta;
    const { item_id, output_index } = this.#place();
    yield { type: "response.function_call_arguments.delta", item_id, output_index, delta };
  }

  *end({ finishReason, usage }: GenerationResult): Generator<object> {
    const isCut = ["length", "timeout", "content_filter"].includes(finishReason);
    const status = isCut ? "incomplete" : "completed";
    yield* this.#endItem(status);
    const reason = finishReason === "content_filter" ? "content_filter" : "max_output_tokens";
    const { promptTokens, completionTokens, totalTokens, cachedTokens } = usage;
    Object.assign(this.#response, {
      status,
      completed_at: Math.floor(Date.now() / 1000),
      incomplete_details: isCut ? { reason } : null,
      usage: {
        input_tokens: promptTokens,
        input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
        output_tokens: completionTokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: totalTokens,
      },
    });
    yield { type: `response.${status}`, response: this.snapshot() };
  }

  #begin(item: OutputMessage | OutputCall): object {
    this.#item = item;
    this.#response.output.push(item);
    const output_index = this.#response.output.length - 1;
    return { type: "response.output_item.added", output_index, item: structuredClone(item) };
  }

  *#endItem(status: "completed" | "incomplete"): Generator<object> {
    const item = this.#item;
    if (item === undefined) return;
    const place = this.#place();
    const { item_id, output_index } = place;
    item.status = status;
    if (item.type === "message") {
      const [part] = item.content as [OutputText];
      yield { type: "response.output_text.done", ...place, text: part.text, logprobs: part.logprobs };
      yield { type: "response.content_part.done", ...place, part: structuredClone(part) };
    } else {
      const { name, arguments: text } = item;
      yield { type: "response.function_call_arguments.done", item_id, output_index, name, arguments: text };
    }
    yield { type: "response.output_item.done", output_index, item: structuredClone(item) };
    this.#item = undefined;
  }

  #place() {
    return {
      item_id: this.#item?.id ?? "",
      output_index: this.#response.output.length - 1,
      content_index: 0,
    };
  }
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
