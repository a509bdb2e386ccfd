/** Markdown that is not finished: what may still become something else waits, what is begun is completed. */

import remend, { type RemendOptions } from "remend";

/** A link without its address is its text. Formulas are shown as they are, and so are tags. */
const COMPLETED: RemendOptions = { linkMode: "text-only", katex: false, htmlTags: false };

/** A line that begins or ends code. */
const FENCE = /^\s*(?:```|~~~)/gm;

/**
 * The mark of a list, a heading, a quotation or a line, without its text; a mark of emphasis or code; or the end of a
 * text in brackets, which an address may follow.
 */
const MARK = /(?:(?<=^|\n)[ \t]*(?:[-*+>=#]+|\d{1,9}[.)]?)|[*_~`]+)[ \t]*$|\]$/;

/** The beginning of a link or a picture, whose text is still to come. */
const BRACKET = /!?\[$/;

const FENCE_MARK = /\n[ \t]*(?:`+|~+)$/;

/** The delimiter between a table's head and its rows. */
const DELIMITER = /^[ \t]*\|[ \t]*:?-[-:| \t]*$/;

/** A text that will go on, as it is shown. */
export function completed(text: string): string {
  const isInCode = (text.match(FENCE)?.length ?? 0) % 2 === 1;
  if (isInCode) return text.replace(FENCE_MARK, "");
  return remend(withoutBegunTable(text).replace(BRACKET, "").replace(MARK, ""), COMPLETED);
}

/** A table's head is a paragraph as long as its delimiter is not there. */
function withoutBegunTable(text: string): string {
  const lines = text.split("\n");
  const end = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  let start = end;
  while (start > 0 && lines[start - 1]?.trimStart().startsWith("|")) start -= 1;
  const isWhole = DELIMITER.test(lines[start + 1] ?? "") && start + 2 < lines.length;
  return start === end || isWhole ? text : lines.slice(0, start).join("\n");
}
