/** Tokens of a text, shaded by probability, with pointer and keyboard navigation. */

import type { TextDelta } from "setun";

/** Events of a token: the pointer or the keyboard is on it, it is selected, or neither. */
export interface TokenListener {
  look(place: number, mark: HTMLElement): void;
  take(place: number, mark: HTMLElement): void;
  leave(): void;
}

const STEPS: Record<string, number> = {
  ArrowRight: 1,
  ArrowLeft: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** The tokens of an element. */
export class Tokens {
  readonly #place: HTMLElement;
  readonly #listener: TokenListener;
  #current = 0;

  constructor(place: HTMLElement, listener: TokenListener) {
    this.#place = place;
    this.#listener = listener;
    place.tabIndex = 0;
    place.addEventListener("pointermove", ({ target, pointerType }) => {
      if (pointerType !== "touch") this.#on(target, (at, mark) => listener.look(at, mark));
    });
    place.addEventListener("pointerleave", () => listener.leave());
    place.addEventListener("click", ({ target }) => {
      this.#on(target, (at, mark) => {
        this.#current = at;
        listener.take(at, mark);
      });
    });
    place.addEventListener("focus", () => {
      if (place.matches(":focus-visible")) this.#go(this.#current);
    });
    place.addEventListener("blur", () => listener.leave());
    place.addEventListener("keydown", (event) => this.#press(event));
  }

  clear(): void {
    this.#place.replaceChildren();
    this.#current = 0;
  }

  /** Appends a token. */
  add({ text, token, logprob }: TextDelta): HTMLElement {
    const mark = document.createElement("span");
    mark.className = "token";
    mark.dataset.token = String(token);
    // The leading space is not shaded: it may be at the end of a line.
    const word = document.createElement("span");
    word.textContent = text.trimStart() || text;
    mark.append(text.slice(0, text.length - word.textContent.length), word);
    if (logprob !== undefined) mark.style.setProperty("--surprise", (1 - Math.exp(logprob)).toFixed(3));
    this.#place.append(mark);
    return mark;
  }

  #press(event: KeyboardEvent): void {
    const steps = STEPS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps !== undefined) this.#go(this.#current + steps);
    else if (event.key === "Enter" || event.key === " ") this.#take();
    else return;
    event.preventDefault();
  }

  #go(place: number): void {
    const last = this.#place.children.length - 1;
    if (last < 0) return;
    this.#current = Math.max(0, Math.min(place, last));
    this.#listener.look(this.#current, this.#mark);
  }

  #take(): void {
    if (this.#place.children.length > 0) this.#listener.take(this.#current, this.#mark);
  }

  get #mark(): HTMLElement {
    return this.#place.children[this.#current] as HTMLElement;
  }

  #on(target: EventTarget | null, act: (place: number, mark: HTMLElement) => void): void {
    const mark = target instanceof Element ? target.closest<HTMLElement>(".token") : null;
    if (mark !== null) act([...this.#place.children].indexOf(mark), mark);
  }
}
