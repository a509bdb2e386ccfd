/** What a text is not to show. */

/** A word, and what is done about it: the word is replaced by a text, or the text ends before it. */
export type FilterRule = {
  /** A text of one character or more. */
  word: string;
  /** Whether it counts only where no letter, digit or `_` stands directly before or after it; `true` unless given. */
  wholeWord?: boolean;
  /** Whether capitals and small letters are the same; `true` unless given. */
  ignoreCase?: boolean;
} & (
  | {
      /** Shown instead of the word; may be empty. */
      replace: string;
      stop?: never;
    }
  | {
      /** Ends the text before the word, with `finishReason: "filtered"`. */
      stop: true;
      replace?: never;
    }
);

const NAMES = ["word", "wholeWord", "ignoreCase", "replace", "stop"];

/** Whether a value is a {@link FilterRule}. */
export function isFilterRule(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const given = Object.entries(value).filter(([, entry]) => entry !== undefined);
  if (!given.every(([name]) => NAMES.includes(name))) return false;
  const { word, wholeWord = true, ignoreCase = true, replace, stop } = value as Record<string, unknown>;
  return (
    typeof word === "string" &&
    word !== "" &&
    typeof wholeWord === "boolean" &&
    typeof ignoreCase === "boolean" &&
    (stop === undefined ? typeof replace === "string" : stop === true && replace === undefined)
  );
}
