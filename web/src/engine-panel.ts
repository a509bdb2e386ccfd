/** Live metrics of the engine. */

import { type Metrics, type Model, SetunError } from "setun";
import { element } from "./elements.js";
import { EngineFigures } from "./engine-figures.js";

/** Interval of updates. */
const INTERVAL_MS = 250;

/** The panel: updated while something runs and it is open, and once more at the end. */
export class EnginePanel {
  readonly #panel = element("engine", HTMLDetailsElement);
  readonly #figures = new EngineFigures(element("engine-figures", HTMLDListElement));
  readonly #model: () => Model | undefined;
  #isRunning = false;
  #isPolling = false;
  #updates = 0;

  constructor(model: () => Model | undefined) {
    this.#model = model;
    this.#panel.addEventListener("toggle", () => void this.#poll());
  }

  /** Whether something runs. */
  set isRunning(isRunning: boolean) {
    this.#isRunning = isRunning;
    void this.#poll();
  }

  get #isWanted(): boolean {
    return this.#isRunning && this.#panel.open;
  }

  async #poll(): Promise<void> {
    if (this.#isPolling || !this.#panel.open) return;
    this.#isPolling = true;
    this.#panel.dataset.live = "";
    try {
      for (let isWanted = true; isWanted; ) {
        isWanted = this.#isWanted;
        await this.#update();
        // A run may have started meanwhile.
        isWanted ||= this.#isWanted;
        if (isWanted) await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
      }
    } finally {
      this.#isPolling = false;
      delete this.#panel.dataset.live;
    }
  }

  async #update(): Promise<void> {
    const model = this.#model();
    if (model === undefined) return;
    const metrics = await metricsOf(model);
    if (metrics === undefined) return;
    this.#updates += 1;
    this.#panel.dataset.updates = String(this.#updates);
    this.#figures.show(model, metrics);
  }
}

/** Metrics of a model; `undefined` if it has just been disposed. */
async function metricsOf(model: Model): Promise<Metrics | undefined> {
  try {
    return await model.metrics();
  } catch (error) {
    if (error instanceof SetunError) return undefined;
    throw error;
  }
}
