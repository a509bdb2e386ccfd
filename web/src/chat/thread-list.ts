/** The list of conversations. */

import { button, element, make } from "../elements.js";
import type { Thread } from "./thread.js";

/** What the list does. */
export interface ThreadListActions {
  open(thread: Thread): void;
  create(): void;
  exportAll(): void;
  importFile(file: File): void;
}

/** A button for each conversation, the last changed first. */
export class ThreadList {
  readonly #list = element("thread-list", HTMLUListElement);
  readonly #actions: ThreadListActions;

  constructor(actions: ThreadListActions) {
    this.#actions = actions;
    element("new-thread", HTMLButtonElement).addEventListener("click", () => actions.create());
    element("export", HTMLButtonElement).addEventListener("click", () => actions.exportAll());
    const input = element("import", HTMLInputElement);
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      input.value = "";
      if (file) actions.importFile(file);
    });
  }

  show(threads: readonly Thread[], current: Thread): void {
    const items = threads.map((thread) => {
      const title = thread.title || "Untitled";
      const made = button(title, () => this.#actions.open(thread));
      made.title = title;
      if (thread.id === current.id) made.setAttribute("aria-current", "true");
      return make("li", {}, made);
    });
    this.#list.replaceChildren(...items);
    element("export", HTMLButtonElement).disabled = threads.length === 0;
  }
}
