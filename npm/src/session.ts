/** Sessions: token sequences that are extended, forked and saved. */

import { checkMessages, checkTokens } from "./check-options.js";
import { countPromptTokens } from "./embeddings.js";
import { SetunError } from "./errors.js";
import type { GenerateOptions } from "./generate-options.js";
import { type Generation, type GenerationContext, startGenerations } from "./generation.js";
import type { ChatMessage } from "./protocol.js";

/** A message of the user to come, which some templates need. */
const NEXT: ChatMessage = { role: "user", content: "" };

/**
 * A token sequence and the model that continues it.
 *
 * The KV cache keeps computed prefixes while there is room, and every prompt with the same prefix uses them.
 * Evicted tokens are computed again, with equal bits. A session holds token ids only, so it needs no disposal.
 *
 * @example
 * ```ts
 * const session = model.session();
 * await session.push("Once upon a time");
 * const { tokens } = await session.generate({ maxTokens: 20 }).result;
 * const other = session.fork();
 * await session.push(tokens);
 * ```
 */
export class Session {
  readonly #context: GenerationContext;
  #tokens: readonly number[];
  /** Messages that the template takes only with one of the user, which is still to come. */
  #waiting: readonly ChatMessage[] = [];
  /** Whether a call of `push` is pending. */
  #isPushing = false;

  /** @internal Sessions come from a model. */
  constructor(context: GenerationContext, tokens: Iterable<number>) {
    this.#context = context;
    this.#tokens = [...tokens];
  }

  /** Token ids of the session. */
  get tokens(): readonly number[] {
    return this.#current();
  }

  /**
   * Appends a text, token ids, or messages formatted with the model's chat template.
   * A text at the start of a session gets the tokenizer's special tokens.
   * Some templates refuse messages without one of the user, such as a lone system prompt: those become tokens together
   * with the next messages.
   *
   * @throws {SetunError} `bad-option`; `unsupported-model` for messages without a chat template.
   * @throws {TypeError} from any method while a call of `push` is pending.
   */
  async push(more: string | readonly number[] | Uint32Array | readonly ChatMessage[]): Promise<void> {
    const tokens = this.#current();
    const messages = typeof more === "string" ? undefined : asMessages(more);
    const prompt = typeof more === "string" ? more : messages && [...this.#waiting, ...messages];
    if (messages === undefined) this.#checkComplete();
    if (prompt === undefined) {
      const added = Array.from(more as readonly number[] | Uint32Array);
      checkTokens(added, this.#context.vocabSize);
      this.#tokens = [...tokens, ...added];
      return;
    }
    this.#isPushing = true;
    try {
      const request = { type: "push", ids: Uint32Array.from(tokens), more: prompt } as const;
      this.#tokens = [...(await this.#context.connection.request(request, "tokens")).ids];
      this.#waiting = [];
    } catch (refusal) {
      if (typeof prompt === "string" || !(await this.#mayWait(prompt, refusal))) throw refusal;
      this.#waiting = prompt;
    } finally {
      this.#isPushing = false;
    }
  }

  /** Keeps the first `length` tokens. */
  truncate(length: number): void {
    const tokens = this.#current();
    this.#tokens = tokens.slice(0, Math.max(0, length));
    if (this.#tokens.length < tokens.length) this.#waiting = [];
  }

  /** Another session with the same tokens. */
  fork(): Session {
    const fork = new Session(this.#context, this.#current());
    fork.#waiting = this.#waiting;
    return fork;
  }

  /**
   * Continues the session's tokens. The generated tokens join the session when they are pushed: `result.tokens`.
   *
   * @throws {SetunError} `bad-option` at once. Other errors reject the generation.
   */
  generate(options: GenerateOptions = {}): Generation {
    const prompt = Uint32Array.from(this.#current());
    this.#checkComplete();
    return startGenerations(this.#context, prompt, options, 1)[0] as Generation;
  }

  /** The tokens and their part of the KV cache, for {@link Model.restore} on this or another device. */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    const ids = Uint32Array.from(this.#current());
    this.#checkComplete();
    return (await this.#context.connection.request({ type: "save", ids }, "saved")).bytes;
  }

  /** Whether a message of the user would mend what the template refuses. */
  async #mayWait(messages: readonly ChatMessage[], refusal: unknown): Promise<boolean> {
    if (!(refusal instanceof SetunError) || refusal.code !== "bad-option") return false;
    if (messages.some(({ role }) => role === "user")) return false;
    return countPromptTokens(this.#context.connection, [...messages, NEXT], {}).then(
      () => true,
      () => false,
    );
  }

  #checkComplete(): void {
    if (this.#waiting.length === 0) return;
    const text =
      "the messages of this session wait for one of the user, as the chat template wants: push it first";
    throw new SetunError("bad-option", text);
  }

  #current(): readonly number[] {
    if (this.#isPushing) throw new TypeError("the session is in use: await the promise of push first");
    return this.#tokens;
  }
}

/** The argument as messages; `undefined` for token ids. */
function asMessages(
  more: readonly number[] | Uint32Array | readonly ChatMessage[],
): readonly ChatMessage[] | undefined {
  const isList = ArrayBuffer.isView(more) || Array.isArray(more);
  if (isList && typeof more[0] !== "object") return undefined;
  const messages = more as readonly ChatMessage[];
  checkMessages(messages);
  return messages;
}
