/** Sessions: token sequences that are extended, forked and saved. */

import { checkMessages, checkTokens } from "./check-options.js";
import type { GenerateOptions } from "./generate-options.js";
import { type Generation, type GenerationContext, startGenerations } from "./generation.js";
import type { ChatMessage } from "./protocol.js";

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
   *
   * @throws {SetunError} `bad-option`; `unsupported-model` for messages without a chat template.
   * @throws {TypeError} from any method while a call of `push` is pending.
   */
  async push(more: string | readonly number[] | Uint32Array | readonly ChatMessage[]): Promise<void> {
    const tokens = this.#current();
    const prompt = typeof more === "string" ? more : asMessages(more);
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
    } finally {
      this.#isPushing = false;
    }
  }

  /** Keeps the first `length` tokens. */
  truncate(length: number): void {
    this.#tokens = this.#current().slice(0, Math.max(0, length));
  }

  /** Another session with the same tokens. */
  fork(): Session {
    return new Session(this.#context, this.#current());
  }

  /**
   * Continues the session's tokens. The generated tokens join the session when they are pushed: `result.tokens`.
   *
   * @throws {SetunError} `bad-option` at once. Other errors reject the generation.
   */
  generate(options: GenerateOptions = {}): Generation {
    const prompt = Uint32Array.from(this.#current());
    return startGenerations(this.#context, prompt, options, 1)[0] as Generation;
  }

  /** The tokens and their part of the KV cache, for {@link Model.restore} on this or another device. */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    const ids = Uint32Array.from(this.#current());
    return (await this.#context.connection.request({ type: "save", ids }, "saved")).bytes;
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
