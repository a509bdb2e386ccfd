/** Markdown on the page while it is written: finished blocks stay as they are, the last ones change in place. */

import { make } from "../elements.js";
import { copyButton } from "./copy-button.js";
import { type Blocks, MESSAGE_LEVEL, readBlocks, renderBlocks, renderPlain } from "./markdown.js";
import { patchChildren } from "./patch.js";

/** Blocks at the end that the next piece may change: a list's items, a heading's underline. */
const OPEN_BLOCKS = 2;

/** Characters beyond which a text is shown as it is. */
const MAX_LENGTH = 200_000;

/** What does not change any more. */
interface Finished {
  /** Characters of the text. */
  readonly length: number;
  /** Nodes of the element. */
  readonly nodes: number;
  /** Level of the last heading. */
  readonly level: number;
}

const NOTHING: Finished = { length: 0, nodes: 0, level: MESSAGE_LEVEL };

/** An element with a text. */
export class MarkdownView {
  readonly element = make("div", { className: "body" });
  #text = "";
  #finished = NOTHING;
  #isReplaced = false;

  /** Shows a text. One that begins with the text before changes its end only. `isOpen`: more will follow. */
  show(text: string, isOpen: boolean): void {
    if (this.#isReplaced) this.#clear();
    // A definition at the end may name links of the whole text.
    const isLater = isOpen || !/^ {0,3}\[[^\]]+\]:/m.test(text);
    if (!isLater || !text.startsWith(this.#text)) this.#finished = NOTHING;
    this.#text = text;
    try {
      if (text.length > MAX_LENGTH) this.#showPlain();
      else this.#showEnd(isOpen);
    } catch (error) {
      // Quotes within quotes, thousands of them, exhaust the stack.
      if (!(error instanceof RangeError)) throw error;
      this.#showPlain();
    }
  }

  /** Shows something else in the place of the text, until the text is shown again. */
  showInstead(node: Node): void {
    this.element.replaceChildren(node);
    this.#isReplaced = true;
  }

  #showEnd(isOpen: boolean): void {
    const { length, nodes, level } = this.#finished;
    const end = this.#text.slice(length);
    const blocks = readBlocks(end, isOpen);
    const finished = finishedBlocks(end, blocks);
    const [done, doneLevel] = renderBlocks(blocks.slice(0, finished.count), level);
    const [open] = renderBlocks(blocks.slice(finished.count), doneLevel);
    this.#finished = {
      length: length + finished.length,
      nodes: nodes + done.childNodes.length,
      level: doneLevel,
    };
    done.append(open);
    for (const block of done.querySelectorAll("pre")) block.replaceWith(codeBlock(block));
    patchChildren(this.element, [...done.childNodes], nodes);
  }

  #clear(): void {
    this.element.replaceChildren();
    this.#finished = NOTHING;
    this.#isReplaced = false;
  }

  #showPlain(): void {
    this.#finished = NOTHING;
    patchChildren(this.element, [renderPlain(this.#text)], 0);
  }
}

/** The first blocks that are finished: how many, and their characters. */
function finishedBlocks(text: string, blocks: Blocks): { count: number; length: number } {
  const last = blocks.filter(({ type }) => type !== "space").at(-OPEN_BLOCKS);
  const count = last === undefined ? 0 : blocks.indexOf(last);
  const raw = blocks
    .slice(0, count)
    .map((block) => block.raw)
    .join("");
  // What was completed for the reader is no part of the text.
  return text.startsWith(raw) ? { count, length: raw.length } : { count: 0, length: 0 };
}

/** Code with its language and a button that copies it. */
function codeBlock(block: HTMLElement): HTMLElement {
  const language = make("span", { textContent: block.dataset.language || "code" });
  const code = make("pre", { tabIndex: 0 }, ...block.childNodes);
  const copy = copyButton("Copy code", () => code.textContent ?? "");
  return make("div", { className: "code" }, make("div", { className: "code-head" }, language, copy), code);
}
