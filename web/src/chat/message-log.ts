/** The messages of a conversation on the page. */

import { button, element, make } from "../elements.js";
import { type MessageActions, MessageView } from "./message-view.js";
import { type Message, path, type Thread, versions } from "./thread.js";

/** Beginnings that a visitor may take, as long as nothing is written. */
const BEGINNINGS = {
  together: [
    "Once upon a time, a little fox found a red balloon.",
    "Tom and Lily went to the beach.",
    "The old king had a secret.",
  ],
  template: [
    "What is a ternary computer?",
    "Write a short poem about snow.",
    "Explain recursion to a child.",
  ],
};

/** Shows a path of messages, or beginnings. */
export class MessageLog {
  readonly #log = element("messages", HTMLElement);
  readonly #actions: MessageActions;
  readonly #begin: (text: string) => void;
  #views: MessageView[] = [];

  constructor(actions: MessageActions, begin: (text: string) => void) {
    this.#actions = actions;
    this.#begin = begin;
  }

  /** `speaker` names the model; `answers` says whether it answers or continues. */
  show(thread: Thread, speaker: string, answers: boolean): void {
    // What a visitor is writing stays.
    const edited = new Map(
      this.#views.filter((view) => view.isEdited).map((view) => [view.message.id, view]),
    );
    const known = new Map(this.#views.map((view) => [view.message, view]));
    this.#views = path(thread).map((message) => {
      const view = edited.get(message.id) ?? known.get(message);
      view?.show({ versions: versions(thread, message), speaker: speakerOf(message, speaker) });
      return view ?? this.#view(thread, message, speaker);
    });
    const elements = this.#views.map((view) => view.element);
    const focused = document.activeElement;
    this.#place(elements.length > 0 ? elements : [this.#beginnings(answers)]);
    if (focused instanceof HTMLElement && this.#log.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** Adds a message at the end. */
  append(thread: Thread, message: Message, speaker: string): MessageView {
    const view = this.#view(thread, message, speaker);
    this.#views.push(view);
    this.#log.querySelector(".beginnings")?.remove();
    this.#log.append(view.element);
    view.element.scrollIntoView({ block: "nearest" });
    return view;
  }

  /** Brings the buttons and figures of the last message into sight, if its text is. */
  showEnd(): void {
    this.#views.at(-1)?.follow();
  }

  /** Puts elements in order. Those that are in their places are not moved, so that nothing in them flashes. */
  #place(elements: readonly Element[]): void {
    for (const there of [...this.#log.children]) if (!elements.includes(there)) there.remove();
    for (const [at, wanted] of elements.entries()) {
      const there = this.#log.children[at];
      if (there !== wanted) this.#log.insertBefore(wanted, there ?? null);
    }
  }

  #view(thread: Thread, message: Message, model: string): MessageView {
    const shown = { message, versions: versions(thread, message), speaker: speakerOf(message, model) };
    return new MessageView(shown, this.#actions);
  }

  #beginnings(answers: boolean): HTMLElement {
    const texts = answers ? BEGINNINGS.template : BEGINNINGS.together;
    const words = answers ? "Ask something, or take one of these:" : "Begin a text, or take one of these:";
    const items = texts.map((text) =>
      make(
        "li",
        {},
        button(text, () => this.#begin(text)),
      ),
    );
    return make(
      "div",
      { className: "beginnings" },
      make("p", { textContent: words }),
      make("ul", {}, ...items),
    );
  }
}

/** Who wrote a message. Conversations of earlier versions do not say which model. */
function speakerOf({ role, writer }: Message, model: string): string {
  return role === "user" ? "You" : (writer ?? model);
}
