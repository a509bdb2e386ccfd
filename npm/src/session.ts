/** Texts that are gone on with. */

import { type Generation, type GenerationContext, startGenerations } from "./generation.js";
import { checkMessages, checkTokens, type GenerateOptions } from "./options.js";
import type { ChatMessage } from "./protocol.js";

/**
 * The tokens of a text, and the model that goes on with them. What a model has computed of a text stays in its cache for
 * as long as there is room, and is used by whatever begins with it; what has left the cache is computed again, to the
 * same bits. So nothing has to be freed.
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
  /** While more is being turned into tokens. */
  #isPushing = false;

  /** @internal Sessions come from a model. */
  constructor(context: GenerationContext, tokens: Iterable<number>) {
    this.#context = context;
    this.#tokens = [...tokens];
  }

  /** Ids of its tokens. */
  get tokens(): readonly number[] {
    return this.#settled();
  }

  /**
   * Appends a text, ids of tokens, or a conversation in the words of the model's chat template. Special tokens are added to
   * a text as the tokenizer says, where the session begins with it.
   *
   * @throws {SetunError} `bad-option`; `unsupported-model` for a conversation where the model has no chat template.
   * @throws {TypeError} Also from everything else but {@link push} itself, while a promise of `push` is pending.
   */
  async push(more: string | readonly number[] | Uint32Array | readonly ChatMessage[]): Promise<void> {
    const tokens = this.#settled();
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

  /** Drops the tokens from the given place on, to go on from there otherwise. */
  truncate(length: number): void {
    this.#tokens = this.#settled().slice(0, Math.max(0, length));
  }

  /** Another session with the same tokens. */
  fork(): Session {
    return new Session(this.#context, this.#settled());
  }

  /**
   * Goes on from its tokens. What comes of it is the session's once it is pushed: the `tokens` of the generation's result.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  generate(options: GenerateOptions = {}): Generation {
    const prompt = Uint32Array.from(this.#settled());
    return startGenerations(this.#context, prompt, options, 1)[0] as Generation;
  }

  /** Its tokens, and what of them is in the model's cache, for `model.restore`: here, or anywhere else. */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    const ids = Uint32Array.from(this.#settled());
    return (await this.#context.connection.request({ type: "save", ids }, "saved")).bytes;
  }

  #settled(): readonly number[] {
    if (this.#isPushing) throw new TypeError("a session was used before the promise of its push was settled");
    return this.#tokens;
  }
}

/** A conversation, unless it is tokens. */
function asMessages(
  more: readonly number[] | Uint32Array | readonly ChatMessage[],
): readonly ChatMessage[] | undefined {
  const isList = ArrayBuffer.isView(more) || Array.isArray(more);
  if (isList && typeof more[0] !== "object") return undefined;
  const messages = more as readonly ChatMessage[];
  checkMessages(messages);
  return messages;
}
