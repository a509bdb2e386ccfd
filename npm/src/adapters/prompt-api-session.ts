/** The state of a session: its messages, their tokens, and the answers of the model and of its tools. */

import type { ResponseFormat } from "../response-format.js";
import {
  type AdapterModel,
  type ChatMessage,
  codeOf,
  type GenerateOptions,
  type Tool,
  type ToolCall,
} from "./core.js";
import { type CheckedPrompt, exception } from "./prompt-api-checks.js";
import type { PromptTool } from "./prompt-api-types.js";

/** Input that does not fit the context, even alone. */
export class QuotaExceededError extends DOMException {
  /** Tokens that the context holds. */
  readonly quota: number;
  /** Tokens of the input. */
  readonly requested: number;

  constructor(message: string, { quota, requested }: { quota: number; requested: number }) {
    super(message, "QuotaExceededError");
    this.quota = quota;
    this.requested = requested;
  }
}

/** What a session is made of. */
export interface ConversationParts {
  readonly model: AdapterModel;
  readonly tools: readonly PromptTool[];
  /** Of all requests: those with tools begin with them. */
  readonly options: GenerateOptions;
}

/** Messages of a session. The initial ones stay; the others are turns, of which the oldest go when the context is full. */
export class Conversation {
  readonly parts: ConversationParts;
  /** Called when turns have been dropped. */
  onOverflow = () => {};
  #initial: readonly ChatMessage[] = [];
  #turns: readonly (readonly ChatMessage[])[] = [];
  #usage = 0;

  constructor(parts: ConversationParts, from?: Conversation) {
    this.parts = parts;
    if (from === undefined) return;
    this.#initial = from.#initial;
    this.#turns = from.#turns;
    this.#usage = from.#usage;
  }

  /** Tokens of all messages. */
  get usage(): number {
    return this.#usage;
  }

  get window(): number {
    return this.parts.model.info.contextLength;
  }

  get isEmpty(): boolean {
    return this.#initial.length + this.#turns.length === 0;
  }

  /** Sets the messages that are never dropped. */
  async begin(messages: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
    await this.append(messages, signal);
    this.#initial = messages;
    this.#turns = [];
  }

  /** Adds messages, and computes them now. */
  async append(messages: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
    await this.#makeRoom(messages);
    await this.#prefill(messages, signal);
    await this.#commit(messages, signal);
  }

  /** Tokens that messages would add. */
  async measure(messages: readonly ChatMessage[]): Promise<number> {
    return Math.max(0, (await this.#count(this.#with(messages))) - (await this.#count(this.#with([]))));
  }

  /** Answers messages, and calls tools until the model calls none. The messages join the session at the end. */
  async reply(
    { messages, isPrefixed }: CheckedPrompt,
    responseFormat: ResponseFormat | undefined,
    signal: AbortSignal,
    onText: (text: string) => void,
  ): Promise<void> {
    const { model, options } = this.parts;
    const given = { ...options, signal, ...(responseFormat && { responseFormat }) };
    let turn = messages;
    for (let continues = isPrefixed; ; continues = false) {
      await this.#makeRoom(turn);
      signal.throwIfAborted();
      const generation = model.chat(this.#with(turn), {
        ...given,
        ...(continues && { continueFinalMessage: true }),
      });
      for await (const { text } of generation) if (text !== "") onText(text);
      const { text, toolCalls, finishReason } = await generation.result;
      const calls = finishReason === "tool_calls" ? toolCalls : []; // the last of an answer that was cut off is none
      if (finishReason === "content_filter") throw exception("NotReadableError", "the answer was filtered");
      turn = withAnswer(turn, continues, text, calls);
      if (calls.length === 0) break;
      turn = [...turn, ...(await Promise.all(calls.map((call) => this.#execute(call))))];
      signal.throwIfAborted();
    }
    await this.#commit(turn, signal);
  }

  async #execute({ id, function: { name, arguments: input } }: ToolCall): Promise<ChatMessage> {
    const tool = this.parts.tools.find((each) => each.name === name);
    if (tool === undefined) throw exception("UnknownError", `the model has called the unknown tool ${name}`);
    const content = String(await tool.execute(JSON.parse(input) as never));
    return { role: "tool", tool_call_id: id, name, content };
  }

  /** Drops the oldest turns until messages fit with room for an answer. If they never do, none is dropped. */
  async #makeRoom(messages: readonly ChatMessage[]): Promise<void> {
    let turns = this.#turns;
    for (;;) {
      const requested = await this.#count([...this.#initial, ...turns.flat(), ...messages]);
      if (requested < this.window) break;
      if (turns.length === 0) {
        const text = `the input has ${requested} tokens, the context ${this.window}`;
        throw new QuotaExceededError(text, { quota: this.window, requested });
      }
      turns = turns.slice(1);
    }
    if (turns === this.#turns) return;
    this.#turns = turns;
    this.#usage = await this.#count(this.#with([]));
    this.onOverflow();
  }

  /** Computes the KV cache of messages, from which the next answer begins. */
  async #prefill(messages: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { model, options } = this.parts;
    await model.chat(this.#with(messages), { ...options, maxTokens: 1, signal }).result;
  }

  /** An abort before this changes nothing. A system message, which can only be the first one, is never dropped. */
  async #commit(turn: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
    const usage = await this.#count(this.#with(turn));
    signal.throwIfAborted();
    const [first] = turn;
    const isSystem = first?.role === "system";
    if (isSystem) this.#initial = [first];
    this.#turns = [...this.#turns, isSystem ? turn.slice(1) : turn];
    this.#usage = usage;
  }

  /** Tokens of messages as requests send them: with the tools, and with what the options tell the template. */
  async #count(messages: readonly ChatMessage[]): Promise<number> {
    const { model, options } = this.parts;
    const { parseSpecial = false, chatTemplateKwargs = {}, chatTemplateTime, tools = [] } = options;
    if (messages.length === 0) return 0;
    const time = chatTemplateTime === undefined ? {} : { chatTemplateTime };
    return model.countTokens(messages, { parseSpecial, chatTemplateKwargs, tools, ...time });
  }

  #with(messages: readonly ChatMessage[]): ChatMessage[] {
    return [...this.#initial, ...this.#turns.flat(), ...messages];
  }
}

/** Messages with the answer to them; a prefix is continued. */
function withAnswer(
  turn: readonly ChatMessage[],
  continues: boolean,
  text: string,
  calls: readonly ToolCall[],
): readonly ChatMessage[] {
  const before = continues ? turn.at(-1)?.content : "";
  const content = `${typeof before === "string" ? before : ""}${text}`;
  const answer = { role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) };
  return [...(continues ? turn.slice(0, -1) : turn), answer];
}

/** The tools of a session as options. */
export function toolsOf(tools: readonly PromptTool[]): { tools?: Tool[] } {
  const functions = tools.map(({ name, description, inputSchema: parameters }): Tool => {
    return { type: "function", function: { name, description, parameters } };
  });
  return functions.length > 0 ? { tools: functions } : {};
}

/** The response format of a constraint: a JSON schema, or a regular expression for the whole text. */
export function formatOf(constraint: object | undefined): ResponseFormat | undefined {
  if (constraint === undefined) return undefined;
  if (typeof constraint !== "object" || constraint === null)
    throw new TypeError("responseConstraint: expected an object");
  if (!(constraint instanceof RegExp)) return { type: "json_schema", schema: constraint };
  const { source, ignoreCase, dotAll } = constraint;
  const flags = `${ignoreCase ? "i" : ""}${dotAll ? "s" : ""}`;
  // The whole text matches anyway; the grammar has no anchors.
  const body = source.replace(/^\^/, "").replace(/(?<!\\)((?:\\\\)*)\$$/, "$1");
  return { type: "grammar", syntax: "regex", definition: flags === "" ? body : `(?${flags})${body}` };
}

/** The exception for what the engine throws. */
export function asException(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const code = codeOf(thrown);
  if (code === undefined) return thrown;
  const names: Readonly<Record<string, string>> = {
    disposed: "InvalidStateError",
    "bad-option": "NotSupportedError",
  };
  return exception(names[code] ?? "UnknownError", (thrown as Error).message, thrown);
}
