/** The state of a session: its messages, their tokens, and the answers of the model and of its tools. */

import type { ResponseFormat } from "../response-format.js";
import { type AdapterModel, type ChatMessage, codeOf, type GenerateOptions, type ToolCall } from "./core.js";
import type { checkPrompt } from "./prompt-api-checks.js";
import { contentOf, type OpenCalls, openCalls } from "./prompt-api-tools.js";
import type { MessageContent, PromptOptions, PromptTool } from "./prompt-api-types.js";
import { QuotaExceededError } from "./prompt-api-types.js";

/** The next message of a user, to count what a template takes only before one. */
const NEXT: ChatMessage = { role: "user", content: "" };

type Messages = readonly ChatMessage[];

/** What a session is made of. */
export interface ConversationParts {
  readonly model: AdapterModel;
  readonly tools: readonly PromptTool[];
  /** Whether the application runs the tools. */
  readonly isOpen: boolean;
  /** Of all requests: those with tools begin with them. */
  readonly options: GenerateOptions;
}

/** Messages of a session. The initial ones stay; the others are turns, of which the oldest go when the context is full. */
export class Conversation {
  readonly parts: ConversationParts;
  /** Called when turns have been dropped. */
  onOverflow = () => {};
  #initial: Messages = [];
  #turns: readonly Messages[] = [];
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

  /** Calls without a response, in a session with tools. */
  get calls(): OpenCalls | undefined {
    const { isOpen, tools } = this.parts;
    return isOpen || tools.length > 0 ? openCalls(this.#with([])) : undefined;
  }

  /** Sets the messages that are never dropped. */
  async begin(messages: Messages, signal: AbortSignal): Promise<void> {
    await this.append(messages, signal);
    this.#initial = messages;
    this.#turns = [];
  }

  /** Adds messages, and computes them now, or with the next prompt where the template takes them only with it. */
  async append(messages: Messages, signal: AbortSignal): Promise<void> {
    await this.#makeRoom(messages);
    signal.throwIfAborted();
    const { model, options } = this.parts;
    const all = this.#with(messages);
    const taken = await this.#countAlone(all).catch(() => undefined);
    if (taken !== undefined) await model.chat(all, { ...options, maxTokens: 1, signal }).result;
    await this.#commit(messages, signal);
  }

  /** Tokens that messages would add. */
  async measure(messages: Messages): Promise<number> {
    return Math.max(0, (await this.#count(this.#with(messages))) - (await this.#count(this.#with([]))));
  }

  /**
   * Answers messages. The session calls its tools until the model calls none; in the open loop calls end the answer.
   * The messages join the session at the end.
   */
  async reply(
    { messages, isPrefixed }: ReturnType<typeof checkPrompt>,
    responseFormat: ResponseFormat | undefined,
    signal: AbortSignal,
    onPiece: (piece: string | MessageContent) => void,
  ): Promise<void> {
    const { model, options, isOpen } = this.parts;
    const given = { ...options, signal, ...(responseFormat && { responseFormat }) };
    let turn: Messages = messages;
    for (let continues = isPrefixed; ; continues = false) {
      await this.#makeRoom(turn);
      signal.throwIfAborted();
      const prefix = continues && { continueFinalMessage: true };
      const generation = model.chat(this.#with(turn), { ...given, ...prefix });
      for await (const { text } of generation) if (text !== "") onPiece(text);
      const { text, toolCalls, finishReason, unfinished } = await generation.result;
      const calls = finishReason === "tool_calls" ? toolCalls : []; // the last of an answer that was cut off is none
      if (finishReason === "content_filter")
        throw new DOMException("the answer was filtered", "NotReadableError");
      if (unfinished && responseFormat)
        throw new DOMException("the answer ended before its responseConstraint was complete", "SyntaxError");
      turn = withAnswer(turn, continues, text, calls);
      if (isOpen || calls.length === 0) {
        await this.#commit(turn, signal);
        return calls.map(contentOf).forEach(onPiece);
      }
      turn = [...turn, ...(await Promise.all(calls.map((call) => this.#execute(call))))];
      signal.throwIfAborted();
    }
  }

  async #execute({ id, function: { name, arguments: input } }: ToolCall): Promise<ChatMessage> {
    const tool = this.parts.tools.find((each) => each.name === name);
    if (!tool?.execute)
      throw new DOMException(`the model has called the unknown tool ${name}`, "UnknownError");
    const content = String(await tool.execute(JSON.parse(input) as never));
    return { role: "tool", tool_call_id: id, name, content };
  }

  /** Drops the oldest turns until messages fit with room for an answer. If they never do, none is dropped. */
  async #makeRoom(messages: Messages): Promise<void> {
    let turns = this.#turns;
    for (;;) {
      const requested = await this.#count([...this.#initial, ...turns.flat(), ...messages]);
      if (requested < this.window) break;
      if (turns.length <= (isResponse(messages) ? 1 : 0)) {
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

  /** An abort before this changes nothing. A system message, which can only be the first one, is never dropped. */
  async #commit(turn: Messages, signal: AbortSignal): Promise<void> {
    const usage = await this.#count(this.#with(turn));
    signal.throwIfAborted();
    const [first] = turn;
    const isSystem = first?.role === "system";
    if (isSystem) this.#initial = [first];
    const added = isSystem ? turn.slice(1) : turn;
    const [before, last] = isResponse(turn) ? [this.#turns.slice(0, -1), this.#turns.at(-1)] : [this.#turns];
    this.#turns = [...before, [...(last ?? []), ...added]];
    this.#usage = usage;
  }

  /** Tokens of messages; with those of an empty one of the user where the template refuses them without. */
  #count(messages: Messages): Promise<number> {
    return this.#countAlone(messages).catch((refusal) =>
      this.#countAlone([...messages, NEXT]).catch(() => Promise.reject(refusal)),
    );
  }

  /** Tokens of messages as requests send them: with the tools, and with what the options tell the template. */
  async #countAlone(messages: Messages): Promise<number> {
    const { model, options } = this.parts;
    const { parseSpecial = false, chatTemplateKwargs = {}, chatTemplateTime, tools = [] } = options;
    if (messages.length === 0) return 0;
    const time = chatTemplateTime === undefined ? {} : { chatTemplateTime };
    return model.countTokens(messages, { parseSpecial, chatTemplateKwargs, tools, ...time });
  }

  #with(messages: Messages): ChatMessage[] {
    return [...this.#initial, ...this.#turns.flat(), ...messages];
  }
}

/** Whether messages begin with the response to a call: they belong to its turn. */
const isResponse = ([first]: Messages) => first?.role === "tool";

/** Messages with the answer to them; a prefix is continued. */
function withAnswer(turn: Messages, continues: boolean, text: string, calls: readonly ToolCall[]): Messages {
  const before = continues ? turn.at(-1)?.content : "";
  const content = `${typeof before === "string" ? before : ""}${text}`;
  const answer = { role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) };
  return [...(continues ? turn.slice(0, -1) : turn), answer];
}

/** The response format of a constraint: a JSON schema, or a regular expression for the whole text. @throws {TypeError} */
export function formatOf(options: PromptOptions): ResponseFormat | undefined {
  const { responseConstraint: constraint, omitResponseConstraintInput: isOmitted } = options;
  if (constraint === undefined && isOmitted)
    throw new TypeError("omitResponseConstraintInput: there is no responseConstraint");
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
  const names: Record<string, string> = { disposed: "InvalidStateError", "bad-option": "NotSupportedError" };
  const error = new DOMException((thrown as Error).message, names[code] ?? "UnknownError");
  return Object.assign(error, { cause: thrown });
}
