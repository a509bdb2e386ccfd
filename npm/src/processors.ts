/** Steps of sampling of one's own, as callers give them. */

import { SetunError } from "./errors.js";

/**
 * A step of one's own. It is called at each choice of a token, greedy ones too, after penalties, biases and bans and before
 * the temperature, unless `samplingOrder` says otherwise. It changes the logits where they lie, and must be done when it
 * returns; neither array is to be used after that.
 *
 * A token may be chosen again, where memory was short, or for a text that does not come about, where `lookahead` guesses: what
 * it does should follow from its arguments alone.
 *
 * @param logits One for each token of the vocabulary, by id. A token that an earlier step has dropped has −Infinity, and stays
 *   dropped; so is one that gets −Infinity here. In a search by beams they are logarithms of probabilities.
 * @param tokens The ids of all tokens so far, those of the prompt included.
 * @throws Whatever is thrown ends the generation, which rejects with `bad-option` and this as its `cause`.
 */
export type LogitsProcessor = (logits: Float32Array, tokens: Uint32Array) => void;

/** The default export of a processor's module. It is called for each generation, and may be async. */
// biome-ignore lint/suspicious/noExplicitAny: modules may say what options they take
export type LogitsProcessorFactory = (options: any) => LogitsProcessor | Promise<LogitsProcessor>;

/** A module whose default export is a {@link LogitsProcessorFactory}. */
export interface LogitsProcessorModule {
  /** Its address; relative ones are relative to the page, in Node to the folder that it was started in. */
  readonly module: string | URL;
  /** What the factory is called with: anything that `structuredClone` takes. */
  readonly options?: unknown;
}

/**
 * A step of one's own: a module, its address alone, or a function where the model runs on the calling thread (in Node, and
 * with `worker: false`). A worker cannot be sent functions.
 */
export type LogitsProcessorInput = string | URL | LogitsProcessorModule | LogitsProcessor;

/** A processor on its way to the model's end. */
export type SentLogitsProcessor = { readonly module: string; readonly options: unknown } | LogitsProcessor;

/** Where a model is, for the modules that it is to load. */
export interface ProcessorContext {
  readonly worker: boolean;
  /** What relative addresses are relative to. */
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
 * What is sent of processors.
 *
 * @throws {SetunError} `bad-option` for what cannot be sent, or is no address.
 */
export function toSentProcessors(
  processors: readonly LogitsProcessorInput[],
  { worker, baseUrl }: ProcessorContext,
): SentLogitsProcessor[] {
  return processors.map((processor, index) => {
    const refuse = (why: string, cause?: unknown) =>
      new SetunError("bad-option", `processors[${index}]: ${why}`, { cause });
    if (typeof processor === "function") {
      if (!worker) return processor;
      throw refuse(
        "a function cannot be sent to the model's worker; pass the address of a module whose default export makes it",
      );
    }
    const isBare = typeof processor === "string" || processor instanceof URL;
    const { module, options }: LogitsProcessorModule = isBare ? { module: processor } : processor;
    try {
      return { module: new URL(module, baseUrl()).href, options: structuredClone(options) };
    } catch (thrown) {
      throw refuse(`expected an address, and options that structuredClone takes: ${thrown}`, thrown);
    }
  });
}
