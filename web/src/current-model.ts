/** The loaded model, kept until another model or backend is selected. */

import { type CatalogEntry, type LoadOptions, type LoadSource, load, type Model, models } from "setun";
import { LoadFailure } from "./load-failure.js";
import { keepFetched } from "./offline.js";

/** A source and its name on the page. */
export interface Choice {
  readonly name: string;
  /** Without one, the built-in model. */
  readonly source?: LoadSource;
}

export const BUILT_IN: Choice = { name: "Story model, built in" };

/** Whether two choices are one model. */
export function sameModel(one: Choice, other: Choice): boolean {
  return one === other || (typeof one.source === "string" && keyOf(one.source) === keyOf(other.source));
}

/** A source; for a model of the catalog its short name, however it is written. */
function keyOf(source: Choice["source"]): Choice["source"] {
  return inCatalog(source)?.name ?? source;
}

/** The model of the catalog that a short name or a Hub name means. */
export function inCatalog(source: Choice["source"]): CatalogEntry | undefined {
  return models.catalog.find(({ name, repository, file }) => {
    const hub = `hf:${repository}`;
    return source === name || source === hub || (file !== undefined && source === `${hub}:${file}`);
  });
}

/** The choice of a name or an address; a model of the catalog has its title. */
export function choiceFor(source: string): Choice {
  const entry = inCatalog(source);
  return entry === undefined ? { name: source, source } : { name: entry.title, source: entry.name };
}

/** Where the last choice is kept. */
const REMEMBERED = "setun-model";

/** Keeps a choice for the next visit. Files that the visitor chose cannot be opened again. */
export function rememberChoice({ source }: Choice): void {
  try {
    if (typeof source === "string") localStorage.setItem(REMEMBERED, source);
    else localStorage.removeItem(REMEMBERED);
  } catch {
    // A browser that keeps nothing refuses; the choice holds for this visit.
  }
}

/** The choice of the last visit, if its model is stored. */
export async function remembered(): Promise<Choice | undefined> {
  try {
    const source = localStorage.getItem(REMEMBERED);
    return source !== null && (await models.has(source)) ? choiceFor(source) : undefined;
  } catch {
    return undefined;
  }
}

/** Loads a model on demand. */
export class CurrentModel {
  #choice = BUILT_IN;
  #loaded: { readonly choice: Choice; readonly wish: string; readonly model: Model } | undefined;

  readonly #listeners: (() => void)[] = [];

  /** Calls `listener` when another model is chosen, and when one is loaded or disposed. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

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
    this.#changed();
  }

  /** The selected model on the given backend. Throws a {@link LoadFailure}, or the reason of the signal. */
  async get(wish: Pick<LoadOptions, "backend" | "threads">, more: LoadOptions): Promise<Model> {
    const asked = { choice: this.#choice, wish: JSON.stringify(wish) };
    const previous = this.#loaded;
    if (previous?.wish === asked.wish && sameModel(previous.choice, asked.choice)) return previous.model;
    await this.release();
    const model = await load(asked.choice.source, { ...wish, ...more }).catch((error) => {
      throw more.signal?.aborted ? error : new LoadFailure(asked.choice.name, error);
    });
    this.#loaded = { ...asked, model };
    this.#changed();
    void keepFetched();
    return model;
  }

  /** Gives back the memory of the loaded model. */
  async release(): Promise<void> {
    const previous = this.#loaded;
    this.#loaded = undefined;
    await previous?.model.dispose();
    if (previous !== undefined) this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
