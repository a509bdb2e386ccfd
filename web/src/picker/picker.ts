/** The view of models: built in, of the catalog, stored, looked up, dropped. */

import { models, type StoredModel } from "setun";
import type { Activity } from "../activity.js";
import { readBackend } from "../controls.js";
import { type Choice, type CurrentModel, choiceFor, sameModel } from "../current-model.js";
import { element, make, say } from "../elements.js";
import { explain } from "../explain.js";
import { showModel, size } from "../figures.js";
import { type Device, detectDevice, limitWords } from "./device-fit.js";
import { allEntries, factsOf, fitHere, type ModelEntry, matches } from "./entries.js";
import { type EntryActions, EntryCard, type EntryState } from "./entry-card.js";
import { families, recommended } from "./families.js";

/** The list of models, and what is done with them. */
export class Picker {
  readonly #current: CurrentModel;
  readonly #activity: Activity;
  readonly #choose: (choice: Choice) => void;
  readonly #list = element("model-list", HTMLUListElement);
  readonly #status = element("models-status", HTMLElement);
  readonly #source = element("model-source", HTMLInputElement);
  readonly #filter = element("model-filter", HTMLInputElement);
  readonly #onlyFitting = element("models-fitting", HTMLInputElement);
  readonly #actions: EntryActions;
  #stored: readonly StoredModel[] = [];
  /** Models that were looked up, with what was found out. */
  #found: ModelEntry[] = [];
  #loading: Choice | undefined;
  /** The card of the model that loads. */
  #card: EntryCard | undefined;
  #refreshes = 0;

  constructor(current: CurrentModel, activity: Activity, choose: (choice: Choice) => void) {
    this.#current = current;
    this.#activity = activity;
    this.#choose = choose;
    this.#actions = {
      use: (entry) => void this.#use(entry),
      pause: () => void activity.stop(),
      estimate: ({ choice }) => void this.#lookUp(choice),
      delete: (entry) => void this.#delete(entry),
    };
    element("look-up", HTMLButtonElement).addEventListener("click", () => this.lookUp());
    current.listen(() => void this.refresh());
    void detectDevice().then((device) => say("models-limit", limitWords(device)));
    this.#filter.addEventListener("input", () => void this.#show());
    this.#onlyFitting.addEventListener("change", () => void this.#show());
    // The form's own action looks a model up.
    this.#filter.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  }

  /** Looks up what is in the field. */
  lookUp(): void {
    const source = this.#source.value.trim();
    if (source === "") this.#source.focus();
    else void this.#lookUp(choiceFor(source));
  }

  /** Shows the list as it is now. */
  async refresh(): Promise<void> {
    this.#refreshes += 1;
    const turn = this.#refreshes;
    const stored = await models.list().catch((error) => {
      this.#report("failed", `The stored models cannot be listed: ${explain(error)}`);
      return [];
    });
    // A later call shows what is newer.
    if (turn !== this.#refreshes) return;
    this.#stored = stored;
    await this.#show();
    await showRoom();
  }

  /** Shows the models that the search names. */
  async #show(): Promise<void> {
    const device = await detectDevice();
    this.#card = undefined;
    const all = allEntries(this.#current.choice, this.#found, this.#stored);
    const shown = all.filter((entry) => this.#isWanted(entry, device));
    const groups = families(shown, device).map(({ title, entries }) => {
      const cards = entries.map((entry) => this.#cardOf(entry, device));
      const list = make("ul", { className: "models", ariaLabel: title }, ...cards);
      return make("li", { className: "family" }, make("h3", { textContent: title }), list);
    });
    this.#list.replaceChildren(...groups);
    element("models-count", HTMLElement).textContent =
      shown.length === all.length ? `${all.length} models` : `${shown.length} of ${all.length} models`;
  }

  #cardOf(entry: ModelEntry, device: Device): HTMLElement {
    const state = this.#stateOf(entry.choice);
    const isRecommended = entry.catalog !== undefined && entry.catalog === recommended(device);
    const card = new EntryCard({ entry, fit: fitHere(entry, device), state, isRecommended }, this.#actions);
    if (state === "loading") this.#card = card;
    return card.element;
  }

  #isWanted(entry: ModelEntry, device: Device): boolean {
    if (!matches(entry, this.#filter.value.trim())) return false;
    return !this.#onlyFitting.checked || fitHere(entry, device)?.runs === "yes";
  }

  #stateOf(choice: Choice): EntryState {
    if (this.#loading !== undefined && sameModel(this.#loading, choice)) return "loading";
    const { loaded } = this.#current;
    return loaded !== undefined && sameModel(loaded.choice, choice) ? "loaded" : "idle";
  }

  async #use(entry: ModelEntry): Promise<void> {
    const { choice } = entry;
    if (!(await this.#mayRun(entry))) return;
    await this.#activity.stop();
    const before = this.#current.loaded?.choice;
    this.#choose(choice);
    this.#activity.start((signal) => this.#load(choice, before, signal));
  }

  /** Whether a model can run here; where that is unknown, its headers tell, before its weights are downloaded. */
  async #mayRun(entry: ModelEntry): Promise<boolean> {
    const { choice, stored } = entry;
    if (typeof choice.source !== "string" || stored !== undefined) return true;
    const known = fitHere(entry, await detectDevice());
    if (known?.runs === "yes") return true;
    const found = await this.#lookUp(choice);
    const fit = found && fitHere(found, await detectDevice());
    if (fit?.runs === "no") this.#report("failed", `${choice.name}: ${fit.words}.`);
    return fit?.runs === "yes";
  }

  /** Loads a model. If that fails, the one that was loaded before is loaded again. */
  async #load(choice: Choice, before: Choice | undefined, signal: AbortSignal): Promise<void> {
    this.#loading = choice;
    this.#report("loading", `Loading ${choice.name}…`);
    void this.refresh();
    try {
      const model = await this.#current.get(readBackend(), {
        signal,
        onProgress: (progress) => this.#card?.show(progress),
      });
      showModel(model);
      this.#report("done", `${choice.name} is loaded: ${model.info.backend}, ${model.info.level}.`);
    } catch (error) {
      const isPaused = signal.aborted && error === signal.reason;
      this.#report(
        isPaused ? "idle" : "failed",
        isPaused ? "Paused. What has arrived stays in the browser." : explain(error),
      );
      if (!isPaused && before !== undefined) await this.#restore(before, signal);
    }
    this.#loading = undefined;
    await this.refresh();
  }

  async #restore(choice: Choice, signal: AbortSignal): Promise<void> {
    this.#choose(choice);
    try {
      showModel(await this.#current.get(readBackend(), { signal }));
    } catch (error) {
      // The next run says why, if it fails as well.
      console.warn("setun: the model before could not be loaded again", error);
    }
  }

  /** Reads the headers of a model. */
  async #lookUp(choice: Choice): Promise<ModelEntry | undefined> {
    this.#report("loading", `Looking up ${choice.name}…`);
    try {
      const entry: ModelEntry = { choice, estimate: await models.estimate(choice.source) };
      this.#found = [...this.#found.filter((other) => !sameModel(other.choice, choice)), entry];
      await this.refresh();
      this.#report("done", `${choice.name}: ${factsOf(entry).join(", ")}.`);
      return entry;
    } catch (error) {
      this.#report("failed", explain(error));
      return undefined;
    }
  }

  async #delete({ choice, stored }: ModelEntry): Promise<void> {
    if (stored === undefined || !confirm(`Delete ${choice.name}, ${size(stored.bytes)}, from this browser?`))
      return;
    try {
      await models.delete(stored);
      await this.refresh();
      this.#report("done", `${choice.name} is deleted.`);
    } catch (error) {
      await this.refresh();
      this.#report("failed", explain(error));
    }
  }

  #report(state: string, words: string): void {
    this.#status.dataset.state = state;
    this.#status.textContent = words;
  }
}

/** Says how much room the browser has. */
async function showRoom(): Promise<void> {
  const { usage, quota } = (await navigator.storage?.estimate?.()) ?? {};
  const words =
    usage === undefined || quota === undefined ? "" : `This site uses ${size(usage)} of ${size(quota)}.`;
  element("room", HTMLElement).textContent = words;
}
