/** Rules of the content filter. */

/** A rule of the content filter: a word is replaced, or ends the text. */
export type FilterRule = {
  /** The word or phrase, one character or more. */
  word: string;
  /**
   * Whether the word matches only between characters other than letters, digits and `_`.
   *
   * @defaultValue `true`
   */
  wholeWord?: boolean;
  /**
   * Whether case is ignored.
   *
   * @defaultValue `true`
   */
  ignoreCase?: boolean;
} & (
  | {
      /** Replacement of the word; may be empty. */
      replace: string;
      /** Excluded by `replace`. */
      stop?: never;
    }
  | {
      /** Ends the text before the word, with `finishReason: "content_filter"`. */
      stop: true;
      /** Excluded by `stop`. */
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
