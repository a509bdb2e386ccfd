/** Custom logits processors on the host. */

import { SetunError } from "./errors.js";
import type { LogitsProcessor, SentLogitsProcessor } from "./processors.js";
import { thrownText } from "./shown.js";

/** The processor functions of a generation. */
export class LoadedProcessors {
  readonly calls: readonly LogitsProcessor[];
  /** The latest error of a processor, and its message in the engine. */
  #thrown: { readonly thrown: unknown; readonly words: string } | undefined;

  private constructor(named: readonly (readonly [string, LogitsProcessor])[]) {
    this.calls = named.map(([name, call]) => this.#guarded(name, call));
  }

  /**
   * Loads processors. A module is imported once, and its factory is called for each generation.
   *
   * @throws {SetunError} `bad-option` with the module's URL.
   */
  static async load(sent: readonly SentLogitsProcessor[]): Promise<LoadedProcessors> {
    return new LoadedProcessors(await Promise.all(sent.map(loadOne)));
  }

  /** The engine's error with the processor's error as its cause. */
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
        const words = `${name} has thrown ${thrownText(thrown)}`;
        this.#thrown = { thrown, words };
        throw new Error(words);
      }
      if (returned instanceof Promise) {
        returned.catch(() => undefined);
        throw new Error(`${name} has returned a promise; expected a synchronous function`);
      }
      if (logits.length !== length) throw new Error(`${name} has transferred its logits array`);
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
  if (typeof sent === "function") return [`logitsProcessors[${index}]`, sent];
  const { module, options } = sent;
  const refuse = (what: string, cause?: unknown) =>
    new SetunError("bad-option", `logitsProcessors[${index}]: ${module} ${what}`, { cause });
  // Bundlers cannot know this module.
  const loaded = await import(/* @vite-ignore */ /* webpackIgnore: true */ module).catch((thrown) => {
    throw refuse(`cannot be loaded: ${thrownText(thrown)}`, thrown);
  });
  const factory: unknown = loaded.default;
  if (typeof factory !== "function") {
    throw refuse(`has ${typeof factory} as its default export, expected a function`);
  }
  const call: unknown = await (async () => factory(options))().catch((thrown) => {
    throw refuse(`has thrown ${thrownText(thrown)} instead of returning a processor`, thrown);
  });
  if (typeof call !== "function") throw refuse(`has returned ${typeof call}, expected a function`);
  return [module, call as LogitsProcessor];
}
