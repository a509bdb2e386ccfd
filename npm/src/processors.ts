/** Custom logits processors, as callers pass them. */

import { SetunError } from "./errors.js";

/**
 * A logits processor: changes the logits in place before each token is chosen, greedy decoding included.
 *
 * It runs after penalties, biases and bans and before the temperature, unless `samplingOrder` differs.
 * It must be synchronous and must not use the arrays afterwards.
 * Its result should depend on its arguments only: it runs again for recomputed tokens and for speculated tokens.
 * An exception ends the generation with `bad-option` and is its `cause`.
 *
 * @param logits One logit per token id. Dropped tokens have −Infinity and stay dropped; −Infinity drops a token. In
 * beam search they are log-probabilities.
 * @param tokens Ids of all tokens so far, prompt included.
 */
export type LogitsProcessor = (logits: Float32Array, tokens: Uint32Array) => void;

/** Default export of a processor module. It is called for each generation, and may be async. */
// biome-ignore lint/suspicious/noExplicitAny: modules may say what options they take
export type LogitsProcessorFactory = (options: any) => LogitsProcessor | Promise<LogitsProcessor>;

/** A module whose default export is a {@link LogitsProcessorFactory}. */
export interface LogitsProcessorModule {
  /** URL of the module, relative to the page; in Node relative to the working directory. */
  readonly module: string | URL;
  /** Argument of the factory: any value that `structuredClone` accepts. */
  readonly options?: unknown;
}

/**
 * A logits processor as an option: a module, its URL, or a function where the model runs on the calling thread (Node,
 * and `worker: false`). Functions cannot be sent to a worker.
 */
export type LogitsProcessorInput = string | URL | LogitsProcessorModule | LogitsProcessor;

/** A processor in a message to the host. */
export type SentLogitsProcessor = { readonly module: string; readonly options: unknown } | LogitsProcessor;

/** Where processors run. */
export interface ProcessorContext {
  readonly worker: boolean;
  /** Base of relative URLs. */
  baseUrl(): string;
}

/** Whether a value is a {@link LogitsProcessorInput}. */
export function isProcessor(value: unknown): boolean {
  if (isAddress(value) || typeof value === "function") return true;
  if (typeof value !== "object" || value === null) return false;
  return (
    isAddress((value as LogitsProcessorModule).module) &&
    Object.keys(value).every((name) => name === "module" || name === "options")
  );
}

function isAddress(value: unknown): boolean {
  return value instanceof URL || (typeof value === "string" && value !== "");
}

/**
 * Processors for a message.
 *
 * @throws {SetunError} `bad-option` if one cannot be sent or has no valid URL.
 */
export function toSentProcessors(
  processors: readonly LogitsProcessorInput[],
  { worker, baseUrl }: ProcessorContext,
): SentLogitsProcessor[] {
  return processors.map((processor, index) => {
    const refuse = (why: string, cause?: unknown) =>
      new SetunError("bad-option", `logitsProcessors[${index}]: ${why}`, { cause });
    if (typeof processor === "function") {
      if (!worker) return processor;
      throw refuse(
        "a function cannot be sent to the model's worker; pass the URL of a module whose default export creates it",
      );
    }
    const isBare = typeof processor === "string" || processor instanceof URL;
    const { module, options }: LogitsProcessorModule = isBare ? { module: processor } : processor;
    try {
      return { module: new URL(module, baseUrl()).href, options: structuredClone(options) };
    } catch (thrown) {
      throw refuse(`expected a URL, and options that structuredClone accepts: ${thrown}`, thrown);
    }
  });
}
