/** One of the two columns of text. */

import type { Generation, TextDelta } from "setun";
import { element, say } from "./elements.js";
import { explain } from "./explain.js";
import type { Story } from "./story.js";
import { type TokenListener, Tokens } from "./tokens.js";

export type State = "idle" | "loading" | "running" | "done" | "failed";

/** A column: a story and its status. */
export class Column {
  readonly #suffix: string;
  readonly #name: string;
  readonly #output: HTMLOutputElement;
  readonly #tokens: Tokens;
  #story: Story | undefined;
  #generation: Generation | undefined;
  /** The chain of generations of this column. */
  #writing = Promise.resolve();
  /** Number of requested generations, and the last one that began. */
  #asked = 0;
  #begun = 0;

  /** Uses the elements whose ids end with `suffix`. */
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

  /** Shows a story. */
  show(story: Story): void {
    this.clear();
    this.#story = { ...story, steps: [] };
    say(`echo${this.#suffix}`, story.echo);
    if (story.caption !== "") say(`caption${this.#suffix}`, story.caption);
    for (const step of story.steps) this.#add(step);
  }

  /** Copies another column, which is idle. */
  takeFrom(other: Column): void {
    if (other.#story !== undefined) this.show(other.#story);
    const { dataset, textContent } = element(`status${other.#suffix}`, HTMLElement);
    this.setState(dataset.state as State, textContent ?? "");
  }

  /** Stops the current generation and runs `work` after it. Errors are shown in the status. */
  write(work: () => Promise<void>): Promise<void> {
    this.#asked += 1;
    const turn = this.#asked;
    this.#generation?.stop();
    const begin = async () => {
      this.#begun = turn;
      // A later request replaces this one.
      if (turn === this.#asked) await work();
    };
    this.#writing = this.#writing.then(begin).catch((error) => this.setState("failed", explain(error)));
    return this.#writing;
  }

  /** Shows the tokens of a generation; calls `onToken` for each. */
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

  /** Marks the token from which two texts differ. */
  markDifference(place: number | undefined): void {
    for (const mark of this.#output.querySelectorAll(".differs")) mark.classList.remove("differs");
    if (place !== undefined) this.#output.children[place]?.classList.add("differs");
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
