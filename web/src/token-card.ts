/** The card of a token: its probability and its alternatives. */

import { type Alternative, percent, visible } from "./alternatives.js";
import { element, say } from "./elements.js";

/** Delay before the card closes, for the pointer to reach it. */
const CLOSE_DELAY_MS = 250;

/** Contents and action of the card. */
export interface CardContents {
  readonly token: number;
  readonly alternatives: readonly Alternative[];
  /** Text of a token at this position. */
  textOf(token: number): Promise<string>;
  /** What choosing a token does; without it the alternatives are only shown. */
  choose?(token: number): void;
}

/** The one card. */
export class TokenCard {
  readonly #card = element("token", HTMLElement);
  #mark: HTMLElement | undefined;
  /** Where the keys go back to. */
  #origin: HTMLElement | undefined;
  #isHeld = false;
  #leaving = 0;

  constructor() {
    this.#card.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    this.#card.addEventListener("pointerleave", () => this.leave());
    this.#card.addEventListener("keydown", (event) => this.#press(event));
    document.addEventListener("pointerdown", ({ target }) => {
      if (target instanceof Node && !this.#card.contains(target)) this.close();
    });
    // Before the page's own keys: the first Escape closes a card that is held, the next one stops the text.
    document.addEventListener("keydown", (event) => this.#escape(event), { capture: true });
    window.addEventListener("resize", () => this.#place());
  }

  /** Shows it until the pointer or the keys leave. */
  look(mark: HTMLElement, contents: CardContents): void {
    if (this.#isHeld && mark !== this.#mark) return;
    this.#show(mark, contents);
  }

  /** Shows it until it is closed, and takes the keys there. */
  hold(mark: HTMLElement, origin: HTMLElement, contents: CardContents): void {
    this.#isHeld = false;
    this.#show(mark, contents);
    this.#isHeld = true;
    this.#origin = origin;
    const current = this.#card.querySelector<HTMLElement>('[aria-current="true"]');
    current?.focus({ preventScroll: true });
  }

  leave(): void {
    clearTimeout(this.#leaving);
    if (!this.#isHeld) this.#leaving = window.setTimeout(() => this.close(), CLOSE_DELAY_MS);
  }

  close(): void {
    clearTimeout(this.#leaving);
    this.#card.hidden = true;
    this.#isHeld = false;
    this.#mark?.classList.remove("current");
    this.#mark = undefined;
  }

  #show(mark: HTMLElement, contents: CardContents): void {
    clearTimeout(this.#leaving);
    if (mark === this.#mark) return;
    this.close();
    this.#mark = mark;
    mark.classList.add("current");
    const choices = contents.alternatives.map((alternative) => this.#choice(contents, alternative));
    element("token-choices", HTMLElement).replaceChildren(...choices);
    void this.#say(mark, contents);
    this.#card.hidden = false;
    this.#place();
  }

  async #say(mark: HTMLElement, { token, alternatives, textOf }: CardContents): Promise<void> {
    const share = alternatives.find((alternative) => alternative.token === token)?.share;
    say("token-said", "");
    const text = visible(await textOf(token));
    if (mark !== this.#mark) return;
    const words = share === undefined ? "no log-probabilities" : percent(share);
    say("token-said", `${text} · ${words}`);
  }

  #choice(contents: CardContents, { token, share }: Alternative): HTMLLIElement {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.token = String(token);
    if (token === contents.token) button.setAttribute("aria-current", "true");
    button.style.setProperty("--share", String(share ?? 0));
    const piece = document.createElement("span");
    piece.className = "piece";
    piece.textContent = "…";
    const number = document.createElement("span");
    number.textContent = share === undefined ? "" : percent(share);
    button.append(piece, number);
    button.addEventListener("click", () => {
      this.close();
      contents.choose?.(token);
    });
    void contents.textOf(token).then(
      (text) => {
        piece.textContent = visible(text);
      },
      () => {
        piece.textContent = `token ${token}`;
      },
    );
    const item = document.createElement("li");
    item.append(button);
    return item;
  }

  /** Below the token, or above it where there is no room. */
  #place(): void {
    const mark = this.#mark;
    if (mark === undefined) return;
    const token = (mark.lastElementChild ?? mark).getBoundingClientRect();
    const { width, height } = this.#card.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(token.left - 8, room - width - 8));
    const isBelow = token.bottom + height <= window.innerHeight || token.top < height;
    const top = isBelow ? token.bottom + 1 : token.top - height - 1;
    this.#card.style.left = `${left + window.scrollX}px`;
    this.#card.style.top = `${top + window.scrollY}px`;
  }

  #press(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const buttons = [...this.#card.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    buttons.at((at + step) % buttons.length)?.focus();
  }

  #escape(event: KeyboardEvent): void {
    if (event.key !== "Escape") return;
    if (this.#isHeld) event.stopPropagation();
    // While the card is still there: to come back to the text is not to look at a token again.
    if (this.#card.contains(document.activeElement)) this.#origin?.focus();
    this.close();
  }
}
