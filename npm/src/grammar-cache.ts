/** Compiled grammars of a model. */

import { SetunError } from "./errors.js";
import type { GrammarKind, GrammarSource } from "./response-format.js";
import type { WasmGrammar, WasmModel } from "./wasm.js";
import { type StartedModule, startWasm } from "./wasm-instance.js";

/**
 * Hand-written types of the generated grammar module.
 *
 * `crates/setun-grammar-wasm` is the other side. `scripts/build.js` checks them against the generated declarations.
 */
export interface GrammarModule {
  default(input: { module_or_path: WebAssembly.Module }): Promise<unknown>;
  /** A vocabulary, from the table of a model. */
  Vocabulary: new (
    table: Uint8Array,
  ) => WasmVocabulary;
  /** A grammar, compiled for a vocabulary. */
  Grammar: new (
    vocabulary: WasmVocabulary,
    kind: GrammarKind,
    text: string,
    timeout?: number,
  ) => WasmGrammar;
}

/** A model's vocabulary in the grammar module. */
export interface WasmVocabulary extends Disposable {
  free(): void;
}

/** The generated JavaScript of the grammar module, and its WebAssembly code. */
export type GrammarBuild = StartedModule<GrammarModule>;

/** Compiling takes milliseconds, and the same grammars come again. */
const MAX_CACHED_GRAMMARS = 8;

/** The grammars of one model. The module is loaded with the first one. */
export class GrammarCache {
  readonly #build: () => Promise<GrammarBuild>;
  #ready: Promise<{ readonly glue: GrammarModule; readonly vocabulary: WasmVocabulary }> | undefined;
  /** Grammars by kind and text, the latest last. */
  readonly #cached = new Map<string, WasmGrammar>();
  #freed = false;

  constructor(build: (() => Promise<GrammarBuild>) | undefined) {
    this.#build = build ?? absent;
  }

  /** A handle to a grammar, for a generation that frees it. It is compiled within `timeout` milliseconds. */
  async grammar(
    { kind, text }: GrammarSource,
    model: Pick<WasmModel, "tokenTable">,
    timeout?: number,
  ): Promise<WasmGrammar> {
    this.#ready ??= this.#start(model).catch((thrown: unknown) => {
      // The next request tries again.
      this.#ready = undefined;
      throw thrown;
    });
    const { glue, vocabulary } = await this.#ready;
    if (this.#freed) throw new SetunError("disposed", "the model has been disposed");
    const key = `${kind} ${text}`;
    const grammar = this.#cached.get(key) ?? new glue.Grammar(vocabulary, kind, text, timeout);
    this.#remember(key, grammar);
    return grammar.share();
  }

  /** Frees all grammars. Running generations have handles of their own. */
  free(): void {
    this.#freed = true;
    for (const grammar of this.#cached.values()) grammar.free();
    this.#cached.clear();
    this.#ready?.then(({ vocabulary }) => vocabulary.free()).catch(() => undefined);
    this.#ready = undefined;
  }

  async #start(model: Pick<WasmModel, "tokenTable">) {
    const build = await this.#build();
    await startWasm(build);
    if (this.#freed) throw new SetunError("disposed", "the model has been disposed");
    return { glue: build.glue, vocabulary: new build.glue.Vocabulary(model.tokenTable()) };
  }

  #remember(key: string, grammar: WasmGrammar): void {
    this.#cached.delete(key);
    this.#cached.set(key, grammar);
    for (const [oldest, given] of this.#cached) {
      if (this.#cached.size <= MAX_CACHED_GRAMMARS) return;
      this.#cached.delete(oldest);
      given.free();
    }
  }
}

async function absent(): Promise<never> {
  throw new SetunError("backend-unavailable", "this package has no grammar module");
}
