/** Steps of sampling of one's own, at the model's end. */

import { SetunError } from "./errors.js";
import type { LogitsProcessor, SentLogitsProcessor } from "./processors.js";

/** The functions of a generation. */
export class LoadedProcessors {
  readonly calls: readonly LogitsProcessor[];
  /** What one of them has thrown last, and the words that the engine keeps of it. */
  #thrown: { readonly thrown: unknown; readonly words: string } | undefined;

  private constructor(named: readonly (readonly [string, LogitsProcessor])[]) {
    this.calls = named.map(([name, call]) => this.#guarded(name, call));
  }

  /**
   * Loads what was sent: a module once, whose factory is called each time.
   *
   * @throws {SetunError} `bad-option`, with the module's address.
   */
  static async load(sent: readonly SentLogitsProcessor[]): Promise<LoadedProcessors> {
    return new LoadedProcessors(await Promise.all(sent.map(loadOne)));
  }

  /** An error of the engine, with what a processor has thrown as its cause. */
  explain(error: unknown): unknown {
    if (this.#thrown === undefined || !(error instanceof Error)) return error;
    if (error.message.endsWith(this.#thrown.words)) error.cause = this.#thrown.thrown;
    return error;
  }

  #guarded(name: string, call: LogitsProcessor): LogitsProcessor {
    return (logits, tokens) => {
      const { length } = logits;
      let returned: unknown;
      try {
        returned = call(logits, tokens);
      } catch (thrown) {
        const words = `${name} has thrown ${thrown}`;
        this.#thrown = { thrown, words };
        throw new Error(words);
      }
      if (returned instanceof Promise) {
        returned.catch(() => undefined);
        throw new Error(`${name} has returned a promise; expected it to be done when it returns`);
      }
      if (logits.length !== length) throw new Error(`${name} has given its logits away`);
      const token = logits.findIndex((logit) => !(logit < Number.POSITIVE_INFINITY));
      if (token === -1) return;
      const found = logits[token];
      throw new Error(`${name} gave token ${token} the logit ${found}, expected a number or -Infinity`);
    };
  }
}

async function loadOne(
  sent: SentLogitsProcessor,
  index: number,
): Promise<readonly [string, LogitsProcessor]> {
  if (typeof sent === "function") return [`processors[${index}]`, sent];
  const { module, options } = sent;
  const refuse = (what: string, cause?: unknown) =>
    new SetunError("bad-option", `processors[${index}]: ${module} ${what}`, { cause });
  // Whatever bundles this file cannot know the module.
  const loaded = await import(/* @vite-ignore */ /* webpackIgnore: true */ module).catch((thrown) => {
    throw refuse(`cannot be loaded: ${thrown}`, thrown);
  });
  const factory: unknown = loaded.default;
  if (typeof factory !== "function") {
    throw refuse(`has no function as its default export, but ${typeof factory}`);
  }
  const call: unknown = await (async () => factory(options))().catch((thrown) => {
    throw refuse(`has thrown ${thrown} instead of making a processor`, thrown);
  });
  if (typeof call !== "function") throw refuse(`made no function of its options, but ${typeof call}`);
  return [module, call as LogitsProcessor];
}
