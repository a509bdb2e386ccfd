/** The model and the backend of the second column, where they differ from the first's. */

import { type Backend, type LoadOptions, models } from "setun";
import { readBackend } from "./controls.js";
import { BUILT_IN, type Choice, CurrentModel, sameModel } from "./current-model.js";
import { element, make } from "./elements.js";
import { choiceOf } from "./picker/entries.js";

/** A model of a column, and how it is to be loaded. */
export interface Writer {
  readonly current: CurrentModel;
  readonly wish: Pick<LoadOptions, "backend" | "threads">;
}

/** Value of a field that follows the first column. */
const SAME = "";

/** The fields of the second column, and its model. */
export class SecondModel {
  readonly #model = element("model-2", HTMLSelectElement);
  readonly #backend = element("backend-2", HTMLSelectElement);
  readonly #own = new CurrentModel();
  /** Models that can be chosen: the built-in one, those of this visit, the stored ones. */
  #choices: readonly Choice[] = [BUILT_IN];

  constructor(first: CurrentModel) {
    this.#list();
    for (const field of [this.#model, this.#backend]) {
      field.addEventListener("change", () => {
        element("seed-2", HTMLInputElement).placeholder = this.isOther ? "that of the first" : "random";
      });
    }
    first.listen(() => this.#add([first.choice]));
  }

  /** Whether another model or another backend than the first's is chosen. */
  get isOther(): boolean {
    return this.#model.value !== SAME || this.#backend.value !== SAME;
  }

  /** Offers the models that are stored now. */
  async offer(): Promise<void> {
    const stored = await models.list().catch(() => []);
    this.#add(stored.filter(({ complete, source }) => complete && source !== "").map(choiceOf));
  }

  /** The second column's model: the first's own if nothing else is chosen. */
  async writer(first: CurrentModel): Promise<Writer> {
    if (!this.isOther) {
      await this.release();
      return { current: first, wish: readBackend() };
    }
    const { value } = this.#model;
    this.#own.choose((value === SAME ? undefined : this.#choices[Number(value)]) ?? first.choice);
    const backend = this.#backend.value;
    return {
      current: this.#own,
      wish: { ...readBackend(), ...(backend !== SAME && { backend: backend as Backend }) },
    };
  }

  /** Gives back the memory of the second model. */
  release(): Promise<void> {
    return this.#own.release();
  }

  #add(choices: readonly Choice[]): void {
    const fresh = choices.filter((choice) => !this.#choices.some((known) => sameModel(known, choice)));
    this.#choices = [...this.#choices, ...fresh];
    this.#list();
  }

  /** Lists the models, and the first column's backends as they are available now. */
  #list(): void {
    const named = this.#choices.map(({ name }, index) =>
      make("option", { value: String(index), textContent: name }),
    );
    refill(this.#model, [same(), ...named]);
    const backends = [...element("backend", HTMLSelectElement).children].map((option) =>
      option.cloneNode(true),
    );
    refill(this.#backend, [same(), ...backends]);
  }
}

function same(): HTMLOptionElement {
  return make("option", { value: SAME, textContent: "same as the first" });
}

/** New options with the same one selected. */
function refill(field: HTMLSelectElement, options: readonly Node[]): void {
  const { value } = field;
  field.replaceChildren(...options);
  field.value = value;
}
