/** A message on the page: its text, its figures and what can be done with it. */

import { button, make } from "../elements.js";
import { copyButton } from "./copy-button.js";
import { MarkdownView } from "./markdown-view.js";
import { ReasoningView } from "./reasoning-view.js";
import type { Message } from "./thread.js";

/** What the buttons of messages do. */
export interface MessageActions {
  /** Takes another text for a message, as a new version; `false` while another answer is written. */
  edit(message: Message, content: string): boolean;
  retry(message: Message): void;
  fork(message: Message): void;
  /** Shows another version. */
  select(message: Message): void;
  /** The tokens of a message with their probabilities, if they are known. */
  tokensOf(message: Message): HTMLElement | undefined;
}

/** A message and its versions. */
export interface ShownMessage {
  readonly message: Message;
  readonly versions: readonly Message[];
  readonly speaker: string;
}

/** An article with a message. */
export class MessageView {
  readonly element: HTMLElement;
  readonly message: Message;
  readonly #actions: MessageActions;
  readonly #speaker = make("h3", { className: "speaker" });
  readonly #reasoning = new ReasoningView();
  readonly #text = new MarkdownView();
  readonly #tools = make("div", { className: "tools" });
  /** What the tools were made of. */
  #made = "";
  #shownText = "";
  #drawing = 0;
  #isEdited = false;
  #isBusy = false;

  constructor(shown: ShownMessage, actions: MessageActions) {
    this.message = shown.message;
    this.#actions = actions;
    const { element: reasoning } = this.#reasoning;
    this.element = make(
      "article",
      { className: "message" },
      this.#speaker,
      reasoning,
      this.#body,
      this.#tools,
    );
    this.element.dataset.role = this.message.role;
    this.show(shown);
  }

  /** Shows the message as it is now; what is the same stays in its place. */
  show({ versions, speaker }: Omit<ShownMessage, "message">): void {
    if (this.#isEdited) return;
    const wasBusy = this.#isBusy;
    this.isBusy = false;
    this.#speaker.textContent = speaker;
    const { content, note } = this.message;
    const made = JSON.stringify([versions.map(({ id }) => id), note]);
    if (made === this.#made && !wasBusy && this.#shownText === content) return;
    this.#made = made;
    this.#draw();
    this.#tools.replaceChildren(...this.#buttons(versions));
  }

  /** Whether the visitor is changing the text. */
  get isEdited(): boolean {
    return this.#isEdited;
  }

  /** Whether the text is being written. */
  set isBusy(isBusy: boolean) {
    this.#isBusy = isBusy;
    this.element.toggleAttribute("data-busy", isBusy);
    this.element.ariaBusy = String(isBusy);
    this.#tools.hidden = isBusy;
  }

  /** Shows the text as it is now, with the next picture of the screen. */
  update(): void {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      this.follow(() => this.#draw());
    });
  }

  /** Keeps the end of the message in sight, if it is there, during a change. */
  follow(change?: () => void): void {
    const isFollowed = this.element.getBoundingClientRect().bottom <= window.innerHeight + 80;
    change?.();
    if (isFollowed) this.element.scrollIntoView({ block: "nearest" });
  }

  get #body(): HTMLElement {
    return this.#text.element;
  }

  #draw(): void {
    const { role, content } = this.message;
    this.#shownText = content;
    this.#reasoning.show(this.message, this.#isBusy && content === "");
    if (role === "user") this.#body.replaceChildren(content);
    else this.#text.show(content, this.#isBusy);
  }

  #buttons(versions: readonly Message[]): (Node | string)[] {
    const { role, note } = this.message;
    const copy = copyButton("Copy", () => this.message.content);
    const edit = button("Edit", () => this.#edit());
    const retry = button("Retry", () => this.#actions.retry(this.message));
    const fork = button("Fork", () => this.#actions.fork(this.message));
    fork.title = "Continue from here in a new conversation";
    const figures = make("span", { className: "note", textContent: note ?? "" });
    const answer = role === "assistant" ? [retry] : [];
    return [...this.#versions(versions), copy, edit, ...answer, fork, ...this.#probabilities(), figures];
  }

  /** A button that shows the tokens in the place of the text. */
  #probabilities(): Node[] {
    const tokens = this.#actions.tokensOf(this.message);
    if (tokens === undefined) return [];
    const made = button("Probabilities", () => {
      const areShown = made.ariaPressed !== "true";
      made.ariaPressed = String(areShown);
      if (areShown) this.#text.showInstead(tokens);
      else this.#draw();
    });
    made.ariaPressed = "false";
    return [made];
  }

  #versions(versions: readonly Message[]): Node[] {
    if (versions.length < 2) return [];
    const at = versions.indexOf(this.message);
    const step = (by: number, text: string, label: string) => {
      const other = versions[at + by];
      const made = button(text, () => other && this.#actions.select(other), label);
      made.disabled = other === undefined;
      return made;
    };
    const place = make("span", { textContent: `${at + 1} of ${versions.length}` });
    const group = make("span", { className: "versions" });
    group.append(step(-1, "‹", "Previous version"), place, step(1, "›", "Next version"));
    return [group];
  }

  /** Puts a field in the place of the text. */
  #edit(): void {
    const field = make("textarea", { value: this.message.content, rows: 4, ariaLabel: "Edit the message" });
    const close = () => {
      editor.replaceWith(this.#body);
      this.#tools.hidden = false;
      this.#isEdited = false;
    };
    const save = button(
      this.message.role === "user" ? "Send as a new version" : "Keep as a new version",
      () => this.#actions.edit(this.message, field.value) && close(),
    );
    save.className = "primary";
    const editor = make(
      "div",
      { className: "editor" },
      field,
      make("div", { className: "row" }, save, button("Cancel", close)),
    );
    editor.addEventListener("keydown", (event) => {
      if (event.key === "Escape") event.stopPropagation();
      if (event.key === "Escape") close();
    });
    this.#body.replaceWith(editor);
    this.#tools.hidden = true;
    this.#isEdited = true;
    field.focus();
  }
}
