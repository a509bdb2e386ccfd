/** A message on the page: its text, its figures and what can be done with it. */

import { button, make } from "../elements.js";
import { renderMarkdown } from "./markdown.js";
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
  readonly #thoughts = make("div", {});
  readonly #reasoning = make("details", { className: "reasoning", hidden: true });
  readonly #body = make("div", { className: "body" });
  readonly #tools = make("div", { className: "tools" });
  #drawing = 0;
  #isEdited = false;

  constructor({ message, versions, speaker }: ShownMessage, actions: MessageActions) {
    this.message = message;
    this.#actions = actions;
    const heading = make("h3", { className: "speaker", textContent: speaker });
    this.element = make(
      "article",
      { className: "message" },
      heading,
      this.#reasoning,
      this.#body,
      this.#tools,
    );
    this.#reasoning.append(make("summary", { textContent: "Reasoning" }), this.#thoughts);
    this.element.dataset.role = message.role;
    this.#draw();
    this.#tools.append(...this.#buttons(versions));
  }

  /** Whether the visitor is changing the text. */
  get isEdited(): boolean {
    return this.#isEdited;
  }

  /** Whether the text is being written. */
  set isBusy(isBusy: boolean) {
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

  #draw(): void {
    const { role, content, reasoning = "" } = this.message;
    this.#reasoning.hidden = reasoning === "";
    if (reasoning !== "") this.#thoughts.replaceChildren(renderMarkdown(reasoning));
    if (role === "user") this.#body.replaceChildren(content);
    else this.#body.replaceChildren(renderMarkdown(content));
    for (const block of this.#body.querySelectorAll("pre")) block.replaceWith(codeBlock(block));
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
      if (areShown) this.#body.replaceChildren(tokens);
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

/** Code with its language and a button that copies it. */
function codeBlock(block: HTMLElement): HTMLElement {
  const language = make("span", { textContent: block.dataset.language || "code" });
  const text = block.textContent ?? "";
  block.tabIndex = 0;
  const head = make(
    "div",
    { className: "code-head" },
    language,
    copyButton("Copy code", () => text),
  );
  return make("div", { className: "code" }, head, block.cloneNode(true));
}

function copyButton(text: string, contents: () => string): HTMLButtonElement {
  const made = button(text, async () => {
    try {
      await navigator.clipboard.writeText(contents());
      made.textContent = "Copied";
    } catch {
      made.textContent = "The browser refused";
    }
    setTimeout(() => {
      made.textContent = text;
    }, 2000);
  });
  return made;
}
