/** A model of the list on the page. */

import type { LoadProgress } from "setun";
import { DownloadClock } from "../download-time.js";
import { button, make } from "../elements.js";
import { progressWords, showShare } from "../figures.js";
import type { Fit } from "./device-fit.js";
import { factsOf, type ModelEntry } from "./entries.js";

/** What the buttons of a model do. */
export interface EntryActions {
  use(entry: ModelEntry): void;
  pause(): void;
  estimate(entry: ModelEntry): void;
  delete(entry: ModelEntry): void;
}

/** Whether a model waits, loads or is loaded. */
export type EntryState = "idle" | "loading" | "loaded";

/** A model, whether it runs here, and what it does now. */
export interface ShownEntry {
  readonly entry: ModelEntry;
  readonly fit: Fit | undefined;
  readonly state: EntryState;
  readonly isRecommended: boolean;
}

/** An item with a model's name, facts, progress and buttons. */
export class EntryCard {
  readonly element = make("li", { className: "model" });
  readonly #bar = make("progress", { ariaLabel: "Progress" });
  readonly #words = make("span", { className: "progress-words" });
  readonly #clock = new DownloadClock();

  constructor({ entry, fit, state, isRecommended }: ShownEntry, actions: EntryActions) {
    const name = make("h4", { textContent: entry.choice.name });
    const badge = make("p", { className: "badge", textContent: "Recommended", hidden: !isRecommended });
    const facts = make("p", { className: "facts", textContent: factsOf(entry).join(" · ") });
    const words = make("p", { className: "fit", textContent: fit?.words ?? "" });
    words.hidden = words.textContent === "";
    const progress = make("div", { className: "progress" }, this.#bar, this.#words);
    progress.hidden = state !== "loading";
    const row = make("div", { className: "row" }, ...buttons(entry, fit, state, actions));
    this.element.dataset.state = state;
    this.element.dataset.fits = fit?.runs ?? "unknown";
    this.element.append(name, badge, facts, words, progress, row);
  }

  show(progress: LoadProgress): void {
    showShare(this.#bar, progress);
    this.#words.textContent = progressWords(progress, this.#clock);
  }
}

function buttons(
  entry: ModelEntry,
  fit: Fit | undefined,
  state: EntryState,
  actions: EntryActions,
): (Node | string)[] {
  const { stored, choice } = entry;
  if (state === "loading") return [named("Pause", choice.name, () => actions.pause())];
  const all: (Node | string)[] = [];
  if (state === "loaded") all.push(make("strong", { textContent: "In use" }));
  else if (choice.source !== "") {
    const use = named(useWords(entry), choice.name, () => actions.use(entry));
    use.className = "primary";
    if (fit?.runs !== "no") all.push(use);
    all.push(named("Size and memory", choice.name, () => actions.estimate(entry)));
  }
  if (stored !== undefined) all.push(named("Delete", choice.name, () => actions.delete(entry)));
  return all;
}

/** What it takes to use a model. */
function useWords({ stored, choice }: ModelEntry): string {
  if (stored?.complete === false) return "Continue the download";
  return stored !== undefined || typeof choice.source !== "string" ? "Use" : "Download and use";
}

/** A button whose name for screen readers says of which model. */
function named(text: string, name: string, act: () => void): HTMLButtonElement {
  return button(text, act, `${text}: ${name}`);
}
