/** Markdown of a model as safe elements. A model's text is a stranger's text. */

import DOMPurify from "dompurify";
import { Marked, type Token } from "marked";
import { make } from "../elements.js";
import { completed } from "./unfinished.js";

/** Blocks of a text, in order. */
export type Blocks = readonly Token[];

/** The level of a message's own heading; headings in it are below. */
export const MESSAGE_LEVEL = 3;

const TAGS =
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul".split(
    " ",
  );

/** Attributes that hold no address. */
const PLAIN_ATTRIBUTES = ["start", "align", "data-language"];

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Tags are shown, not obeyed.
    html: ({ text }) => escaped(text),
    // An image would tell its server that it is looked at.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    code: ({ text, lang }) =>
      `<pre data-language="${escaped(lang?.split(/\s/)[0] ?? "")}"><code>${escaped(text)}</code></pre>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

/** A text's blocks: paragraphs, lists, code. If more will follow, what is begun is completed, such as emphasis. */
export function readBlocks(text: string, isOpen: boolean): Blocks {
  return marked.lexer(isOpen ? completed(text) : text);
}

/** The elements of blocks after a heading of a level, and the level of their last heading. */
export function renderBlocks(blocks: Blocks, level: number): [fragment: DocumentFragment, level: number] {
  const fragment = DOMPurify.sanitize(marked.parser([...blocks]), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
    ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    link.title = link.href;
  }
  return [fragment, nestHeadings(fragment, level)];
}

/** A text as it is. */
export function renderPlain(text: string): HTMLElement {
  return make("p", { className: "plain", textContent: text });
}

/** Headings of the text follow the page's: none is more than one level below the one before. */
function nestHeadings(fragment: DocumentFragment, before: number): number {
  let last = before;
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    last = Math.min(Number(heading.tagName.slice(1)) + MESSAGE_LEVEL, last + 1, 6);
    const level = document.createElement(`h${last}`);
    level.append(...heading.childNodes);
    heading.replaceWith(level);
  }
  return last;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
