/** Embeddings and counts of tokens. */

import { check, checkStrings, engineOptions } from "./check-options.js";
import type { Connection } from "./connection.js";
import type { GenerateOptions } from "./generate-options.js";
import { GENERATE } from "./generate-rules.js";
import { isBoolean, oneOf, type Rules } from "./option-checks.js";
import type { WasmPrompt } from "./wasm.js";

/** Options of {@link Model.embed} and {@link Model.embedMany}. */
export interface EmbedOptions {
  /**
   * Which hidden states make the vector: that of the last token, or the mean over all.
   *
   * @defaultValue `"last"`
   */
  pooling?: "last" | "mean";
  /**
   * Whether vectors have the length 1, so that their products are cosines.
   *
   * @defaultValue `true`
   */
  normalize?: boolean;
}

/** The vector of a text. */
export interface Embedding {
  /** The vector; its length is the model's hidden size. */
  readonly embedding: Float32Array<ArrayBuffer>;
  /** Numbers of tokens. */
  readonly usage: {
    /** Tokens that were read, special ones included. */
    readonly promptTokens: number;
  };
}

/** The vectors of several texts, in their order. */
export interface Embeddings {
  /** A vector for each text. */
  readonly embeddings: readonly Float32Array<ArrayBuffer>[];
  /** Numbers of tokens of all texts together. */
  readonly usage: {
    /** Tokens that were read, special ones included. */
    readonly promptTokens: number;
  };
}

/** Options of {@link Model.countTokens}, with the meaning that they have for a request. */
export type CountOptions = Pick<
  GenerateOptions,
  "parseSpecial" | "continueFinalMessage" | "chatTemplateKwargs" | "chatTemplateTime" | "tools" | "toolChoice"
>;

const EMBED: Rules<EmbedOptions> = {
  pooling: [oneOf(["last", "mean"]), '"last" or "mean"'],
  normalize: [isBoolean, "true or false"],
};

/** Options that change the tokens of a conversation. */
const COUNTED = [
  "parseSpecial",
  "continueFinalMessage",
  "chatTemplateKwargs",
  "chatTemplateTime",
  "tools",
  "toolChoice",
] as const satisfies (keyof CountOptions)[];

const COUNT = Object.fromEntries(COUNTED.map((name) => [name, GENERATE[name]])) as Rules<CountOptions>;

/** Embeds texts. */
export async function embedTexts(
  connection: Connection,
  texts: readonly string[],
  options: EmbedOptions,
): Promise<Embeddings> {
  check(options, EMBED);
  checkStrings("texts", texts);
  const { pooling = "last", normalize = true } = options;
  const request = { type: "embed", texts, pooling: { mean: pooling === "mean", normalize } } as const;
  const { embeddings, tokens } = await connection.request(request, "embedded");
  return { embeddings, usage: { promptTokens: tokens } };
}

/** Counts the tokens of a prompt. */
export async function countPromptTokens(
  connection: Connection,
  prompt: WasmPrompt,
  options: CountOptions,
): Promise<number> {
  check(options, COUNT);
  const request = { type: "count-tokens", prompt, options: engineOptions(options) } as const;
  return (await connection.request(request, "count")).count;
}
