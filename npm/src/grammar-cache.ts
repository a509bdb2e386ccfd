/** Forms where the model is: compiled by a module of their own, which is fetched with the first. */

import { SetunError } from "./errors.js";
import type { GrammarKind, GrammarSource } from "./response-format.js";
import type { WasmGrammar, WasmModel } from "./wasm.js";
import { type StartedModule, startWasm } from "./wasm-instance.js";

/**
 * What the generated module of grammars exports, typed by hand. `crates/setun-grammar-wasm` is the other side;
 * `scripts/build.js` checks this against the generated declarations.
 */
export interface GrammarModule {
  default(input: { module_or_path: WebAssembly.Module }): Promise<unknown>;
  /** A model's tokens, from its table. */
  Vocabulary: new (
    table: Uint8Array,
  ) => WasmVocabulary;
  /** A form, compiled for these tokens. */
  Grammar: new (
    vocabulary: WasmVocabulary,
    kind: GrammarKind,
    text: string,
  ) => WasmGrammar;
}

/** A model's tokens, as the module has them. */
export interface WasmVocabulary extends Disposable {
  free(): void;
}

/** The module: its generated JavaScript, and where its code comes from. */
export type GrammarBuild = StartedModule<GrammarModule>;

/** The latest forms are kept: they come again and again, and take milliseconds each. */
const MAX_CACHED_GRAMMARS = 8;

/** The grammars of one model. */
export class GrammarCache {
  readonly #build: () => Promise<GrammarBuild>;
  #ready: Promise<{ readonly glue: GrammarModule; readonly vocabulary: WasmVocabulary }> | undefined;
  /** By their forms, the latest last. */
  readonly #kept = new Map<string, WasmGrammar>();
  #freed = false;

  constructor(build: (() => Promise<GrammarBuild>) | undefined) {
    this.#build = build ?? absent;
  }

  /** The grammar of a form, for a generation that frees it. */
  async grammar({ kind, text }: GrammarSource, model: Pick<WasmModel, "tokenTable">): Promise<WasmGrammar> {
    this.#ready ??= this.#start(model).catch((thrown: unknown) => {
      // The next form tries again.
      this.#ready = undefined;
      throw thrown;
    });
    const { glue, vocabulary } = await this.#ready;
    if (this.#freed) throw new SetunError("disposed", "the model has been disposed");
    const key = `${kind} ${text}`;
    const grammar = this.#kept.get(key) ?? new glue.Grammar(vocabulary, kind, text);
    this.#keep(key, grammar);
    return grammar.share();
  }

  /** Lets go of all that is kept; generations under way have their own. */
  free(): void {
    this.#freed = true;
    for (const grammar of this.#kept.values()) grammar.free();
    this.#kept.clear();
    this.#ready?.then(({ vocabulary }) => vocabulary.free()).catch(() => undefined);
    this.#ready = undefined;
  }

  async #start(model: Pick<WasmModel, "tokenTable">) {
    const build = await this.#build();
    await startWasm(build);
    if (this.#freed) throw new SetunError("disposed", "the model has been disposed");
    return { glue: build.glue, vocabulary: new build.glue.Vocabulary(model.tokenTable()) };
  }

  #keep(key: string, grammar: WasmGrammar): void {
    this.#kept.delete(key);
    this.#kept.set(key, grammar);
    for (const [oldest, given] of this.#kept) {
      if (this.#kept.size <= MAX_CACHED_GRAMMARS) return;
      this.#kept.delete(oldest);
      given.free();
    }
  }
}

async function absent(): Promise<never> {
  throw new SetunError("backend-unavailable", "this package is without the module that compiles forms");
}
