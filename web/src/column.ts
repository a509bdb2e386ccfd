/** One of the two texts on the page. */

import type { Generation, TextDelta } from "setun";
import { element, say } from "./elements.js";
import { explain } from "./figures.js";
import type { Story } from "./story.js";
import { type TokenListener, Tokens } from "./tokens.js";

export type State = "idle" | "loading" | "running" | "done" | "failed";

/** Shows a story, and how far it is. */
export class Column {
  readonly #suffix: string;
  readonly #name: string;
  readonly #output: HTMLOutputElement;
  readonly #tokens: Tokens;
  #story: Story | undefined;
  #generation: Generation | undefined;
  /** All that was written here, or waits to be. */
  #writing = Promise.resolve();
  /** How often something was to be written; and which of it was begun last. */
  #asked = 0;
  #begun = 0;

  /** Of the elements whose names end so. */
  constructor(suffix: "" | "-2", listener: (column: Column) => TokenListener) {
    this.#suffix = suffix;
    this.#name = element(`caption${suffix}`, HTMLElement).textContent ?? "";
    this.#output = element(`text${suffix}`, HTMLOutputElement);
    this.#tokens = new Tokens(this.#output, listener(this));
  }

  get story(): Story | undefined {
    return this.#story;
  }

  get output(): HTMLElement {
    return this.#output;
  }

  clear(): void {
    this.#story = undefined;
    this.#tokens.clear();
    say(`echo${this.#suffix}`, "");
    say(`caption${this.#suffix}`, this.#name);
  }

  /** Shows all of a story that there is. */
  show(story: Story): void {
    this.clear();
    this.#story = { ...story, steps: [] };
    say(`echo${this.#suffix}`, story.echo);
    if (story.caption !== "") say(`caption${this.#suffix}`, story.caption);
    for (const step of story.steps) this.#add(step);
  }

  /** Shows what another one shows, which is not being written. */
  takeFrom(other: Column): void {
    if (other.#story !== undefined) this.show(other.#story);
    const { dataset, textContent } = element(`status${other.#suffix}`, HTMLElement);
    this.setState(dataset.state as State, textContent ?? "");
  }

  /** Ends what is being written here, then does what writes next; if that fails, it is said here. */
  write(work: () => Promise<void>): Promise<void> {
    this.#asked += 1;
    const turn = this.#asked;
    this.#generation?.stop();
    const begin = async () => {
      this.#begun = turn;
      // What was asked for later is wanted in its place.
      if (turn === this.#asked) await work();
    };
    this.#writing = this.#writing.then(begin).catch((error) => this.setState("failed", explain(error)));
    return this.#writing;
  }

  /** Shows a generation as it comes; calls `onToken` for each of its tokens. */
  async follow(generation: Generation, onToken: () => void): Promise<void> {
    if (this.#begun !== this.#asked) generation.stop();
    this.#generation = generation;
    this.#output.ariaBusy = "true";
    try {
      for await (const step of generation) {
        this.#add(step);
        onToken();
      }
    } finally {
      this.#output.ariaBusy = "false";
      this.#generation = undefined;
    }
  }

  setState(state: State, words: string): void {
    const status = element(`status${this.#suffix}`, HTMLElement);
    status.dataset.state = state;
    status.textContent = words;
  }

  #add(step: TextDelta): void {
    if (this.#story === undefined) return;
    const mark = this.#tokens.add(step);
    this.#story.steps.push(step);
    const { length } = this.#story.steps;
    mark.classList.toggle("kept", length < this.#story.kept);
    mark.classList.toggle("forked", length === this.#story.kept);
  }
}
