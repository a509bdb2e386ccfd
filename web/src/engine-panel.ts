/** What goes on in the engine, a few times a second while something runs. */

import { type Metrics, type Model, SetunError } from "setun";
import { element } from "./elements.js";
import { EngineFigures } from "./engine-figures.js";

/** Time between two looks. */
const INTERVAL_MS = 250;

/** Looks at the model that is loaded while something runs and the panel is open, and once more at the end. */
export class EnginePanel {
  readonly #panel = element("engine", HTMLDetailsElement);
  readonly #figures = new EngineFigures(element("engine-figures", HTMLDListElement));
  readonly #model: () => Model | undefined;
  #isRunning = false;
  #isWatching = false;
  #looks = 0;

  constructor(model: () => Model | undefined) {
    this.#model = model;
    this.#panel.addEventListener("toggle", () => void this.#watch());
  }

  /** Something has begun, or all has ended. */
  set isRunning(isRunning: boolean) {
    this.#isRunning = isRunning;
    void this.#watch();
  }

  get #isWanted(): boolean {
    return this.#isRunning && this.#panel.open;
  }

  async #watch(): Promise<void> {
    if (this.#isWatching || !this.#panel.open) return;
    this.#isWatching = true;
    try {
      for (let isWanted = true; isWanted; ) {
        isWanted = this.#isWanted;
        await this.#look();
        // It may have begun again while the engine was asked.
        isWanted ||= this.#isWanted;
        if (isWanted) await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
      }
    } finally {
      this.#isWatching = false;
    }
  }

  async #look(): Promise<void> {
    const model = this.#model();
    if (model === undefined) return;
    const metrics = await metricsOf(model);
    if (metrics === undefined) return;
    this.#looks += 1;
    this.#panel.dataset.looks = String(this.#looks);
    this.#figures.show(model, metrics);
  }
}

/** What a model counts, unless it is replaced by another just now. */
async function metricsOf(model: Model): Promise<Metrics | undefined> {
  try {
    return await model.metrics();
  } catch (error) {
    if (error instanceof SetunError) return undefined;
    throw error;
  }
}
