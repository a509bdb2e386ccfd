/** Markdown of a model as safe elements. A model's text is a stranger's text. */

import DOMPurify from "dompurify";
import { Marked } from "marked";

/** Characters beyond which a text is shown as it is. */
const MAX_LENGTH = 200_000;

/** The level of a message's own heading; headings in it are below. */
const MESSAGE_LEVEL = 3;

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

/** The elements of a text. */
export function renderMarkdown(text: string): DocumentFragment {
  const fragment = sanitized(text);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    link.title = link.href;
  }
  nestHeadings(fragment);
  return fragment;
}

function sanitized(text: string): DocumentFragment {
  try {
    if (text.length > MAX_LENGTH) return plain(text);
    return DOMPurify.sanitize(marked.parse(text, { async: false }), {
      ALLOWED_TAGS: TAGS,
      ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
      ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
      ALLOW_DATA_ATTR: false,
      ALLOW_ARIA_ATTR: false,
      ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
      RETURN_DOM_FRAGMENT: true,
    });
  } catch (error) {
    // Quotes within quotes, thousands of them, exhaust the stack.
    if (error instanceof RangeError) return plain(text);
    throw error;
  }
}

function plain(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const block = document.createElement("p");
  block.className = "plain";
  block.textContent = text;
  fragment.append(block);
  return fragment;
}

/** Headings of the text follow the page's: none is more than one level below the one before. */
function nestHeadings(fragment: DocumentFragment): void {
  let last = MESSAGE_LEVEL;
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    last = Math.min(Number(heading.tagName.slice(1)) + MESSAGE_LEVEL, last + 1, 6);
    const level = document.createElement(`h${last}`);
    level.append(...heading.childNodes);
    heading.replaceWith(level);
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
