/** The loaded model, kept until another model or backend is selected. */

import { type LoadOptions, type LoadSource, load, type Model } from "setun";

/** A source and its name on the page. */
export interface Choice {
  readonly name: string;
  /** Without one, the built-in model. */
  readonly source?: LoadSource;
}

export const BUILT_IN: Choice = { name: "Story model, built in" };

/** Loads a model on demand. */
export class CurrentModel {
  #choice = BUILT_IN;
  #loaded: { readonly choice: Choice; readonly wish: string; readonly model: Model } | undefined;

  get choice(): Choice {
    return this.#choice;
  }

  /** The loaded model, if there is one. */
  get loaded(): { readonly choice: Choice; readonly model: Model } | undefined {
    return this.#loaded;
  }

  /** Selects the model of the next run. */
  choose(choice: Choice): void {
    this.#choice = choice;
  }

  /** The selected model on the given backend. */
  async get(wish: Pick<LoadOptions, "backend" | "threads">, more: LoadOptions): Promise<Model> {
    const asked = { choice: this.#choice, wish: JSON.stringify(wish) };
    if (this.#loaded?.choice === asked.choice && this.#loaded.wish === asked.wish) return this.#loaded.model;
    const previous = this.#loaded;
    this.#loaded = undefined;
    await previous?.model.dispose();
    const model = await load(asked.choice.source, { ...wish, ...more });
    this.#loaded = { ...asked, model };
    return model;
  }
}
