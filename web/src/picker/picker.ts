/** The view of models: built in, stored, looked up, dropped. */

import { models } from "setun";
import type { Activity } from "../activity.js";
import { readBackend } from "../controls.js";
import { type Choice, type CurrentModel, sameModel } from "../current-model.js";
import { element } from "../elements.js";
import { explain, showModel, size } from "../figures.js";
import { allEntries, estimatedFacts, type ModelEntry } from "./entries.js";
import { type EntryActions, EntryCard, type EntryState } from "./entry-card.js";

/** The list of models, and what is done with them. */
export class Picker {
  readonly #current: CurrentModel;
  readonly #activity: Activity;
  readonly #choose: (choice: Choice) => void;
  readonly #list = element("models", HTMLUListElement);
  readonly #status = element("models-status", HTMLElement);
  readonly #source = element("model-source", HTMLInputElement);
  readonly #actions: EntryActions;
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
      use: ({ choice }) => void this.#use(choice),
      pause: () => void activity.stop(),
      estimate: ({ choice }) => void this.#estimate(choice),
      delete: (entry) => void this.#delete(entry),
    };
    element("look-up", HTMLButtonElement).addEventListener("click", () => this.lookUp());
    current.listen(() => void this.refresh());
  }

  /** Looks up what is in the field. */
  lookUp(): void {
    const source = this.#source.value.trim();
    if (source === "") this.#source.focus();
    else void this.#estimate({ name: source, source });
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
    this.#card = undefined;
    const cards = allEntries(this.#current.choice, this.#found, stored).map((entry) => {
      const state = this.#stateOf(entry.choice);
      const card = new EntryCard(entry, state, this.#actions);
      if (state === "loading") this.#card = card;
      return card.element;
    });
    this.#list.replaceChildren(...cards);
    await showRoom();
  }

  #stateOf(choice: Choice): EntryState {
    if (this.#loading !== undefined && sameModel(this.#loading, choice)) return "loading";
    const { loaded } = this.#current;
    return loaded !== undefined && sameModel(loaded.choice, choice) ? "loaded" : "idle";
  }

  async #use(choice: Choice): Promise<void> {
    await this.#activity.stop();
    this.#choose(choice);
    this.#activity.start((signal) => this.#load(choice, signal));
  }

  async #load(choice: Choice, signal: AbortSignal): Promise<void> {
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
    }
    this.#loading = undefined;
    await this.refresh();
  }

  async #estimate(choice: Choice): Promise<void> {
    this.#report("loading", `Looking up ${choice.name}…`);
    try {
      const facts = estimatedFacts(await models.estimate(choice.source));
      this.#found = [...this.#found.filter((entry) => !sameModel(entry.choice, choice)), { choice, facts }];
      this.#report("done", `${choice.name}: ${facts.join(", ")}.`);
    } catch (error) {
      this.#report("failed", explain(error));
    }
    await this.refresh();
  }

  async #delete({ choice, stored }: ModelEntry): Promise<void> {
    if (stored === undefined || !confirm(`Delete ${choice.name}, ${size(stored.bytes)}, from this browser?`))
      return;
    try {
      await models.delete(stored);
      this.#report("done", `${choice.name} is deleted.`);
    } catch (error) {
      this.#report("failed", explain(error));
    }
    await this.refresh();
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
