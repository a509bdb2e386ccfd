/** Rules of the content filter. */

/** A rule of the content filter: what matches is replaced, or ends the text. */
export type FilterRule = (
  | {
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
      /** Excluded by `word`. */
      regex?: never;
    }
  | {
      /** A regular expression in the syntax of Rust's crate `regex`, such as `(?i)secret \\w+`. A match has up to 512 characters. */
      regex: string;
      /** Excluded by `regex`. */
      word?: never;
      /** Excluded by `regex`. */
      wholeWord?: never;
      /** Excluded by `regex`. */
      ignoreCase?: never;
    }
) &
  (
    | {
        /** Replacement of the match; may be empty. */
        replace: string;
        /** Excluded by `replace`. */
        stop?: never;
      }
    | {
        /** Ends the text before the match, with `finishReason: "content_filter"`. */
        stop: true;
        /** Excluded by `stop`. */
        replace?: never;
      }
  );

const OF_WORDS = ["word", "wholeWord", "ignoreCase"];

/** Whether a value is a {@link FilterRule}. */
export function isFilterRule(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const given = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const { regex, wholeWord = true, ignoreCase = true, replace, stop } = value as Record<string, unknown>;
  const names = ["replace", "stop", ...(regex === undefined ? OF_WORDS : ["regex"])];
  if (!given.every(([name]) => names.includes(name))) return false;
  const pattern = regex ?? (value as Record<string, unknown>).word;
  return (
    typeof pattern === "string" &&
    pattern !== "" &&
    typeof wholeWord === "boolean" &&
    typeof ignoreCase === "boolean" &&
    (stop === undefined ? typeof replace === "string" : stop === true && replace === undefined)
  );
}
