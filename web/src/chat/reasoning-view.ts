/** Folded reasoning of an answer. */

import { make } from "../elements.js";
import { MarkdownView } from "./markdown-view.js";
import type { Message } from "./thread.js";

/** A fold with the thoughts. Its title says how long they took. */
export class ReasoningView {
  readonly #title = make("summary", {});
  readonly #thoughts = new MarkdownView();
  readonly element = make(
    "details",
    { className: "reasoning", hidden: true },
    this.#title,
    this.#thoughts.element,
  );
  #text = "";
  #isOpen = false;

  constructor() {
    this.#thoughts.element.className = "thoughts";
    // What is folded is not drawn.
    this.element.addEventListener("toggle", () => this.#draw());
  }

  /** `isOpen`: the model still thinks. */
  show({ reasoning = "", reasoningSeconds }: Message, isOpen: boolean): void {
    this.#text = reasoning;
    this.#isOpen = isOpen;
    this.element.hidden = reasoning === "";
    this.#title.textContent = titleOf(isOpen, reasoningSeconds);
    this.#draw();
  }

  #draw(): void {
    if (this.element.open) this.#thoughts.show(this.#text, this.#isOpen);
  }
}

function titleOf(isOpen: boolean, seconds: number | undefined): string {
  if (seconds === undefined) return isOpen ? "Thinking…" : "Reasoning";
  const whole = Math.max(1, Math.round(seconds));
  return `${isOpen ? "Thinking" : "Thought"} for ${whole} ${whole === 1 ? "second" : "seconds"}`;
}
