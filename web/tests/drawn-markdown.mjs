/** Markdown texts that a seed decides. */

const WORDS =
  "a digit of three states was built in Moscow and its memory held numbers, which nobody lost".split(" ");

/** Whole numbers from 0 to `most`, which a seed decides. @param {number} seed */
export function numbers(seed) {
  let state = (seed * 2_654_435_761 + 97) % 2 ** 31;
  return (/** @type {number} */ most) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * (most + 1));
  };
}

/** A text of blocks of every kind. @param {number} seed */
export function drawMarkdown(seed) {
  const next = numbers(seed);
  /** @template Item @param {readonly Item[]} items */
  const one = (items) => /** @type {Item} */ (items[next(items.length - 1)]);
  const words = (most = 6) => Array.from({ length: 1 + next(most) }, () => one(WORDS)).join(" ");
  const span = () =>
    one([
      () => words(),
      () => `**${words(3)}**`,
      () => `*${words(3)}*`,
      () => `\`${words(2)}\``,
      () => `~~${words(2)}~~`,
      () => `[${words(3)}](https://example.org/${next(99)})`,
      () => `2 * ${next(9)} and snake_case_${next(9)}`,
    ])();
  const line = () => Array.from({ length: 1 + next(4) }, span).join(" ");
  const lines = (/** @type {number} */ most, /** @type {(at: number) => string} */ make) =>
    Array.from({ length: 1 + next(most) }, (_, at) => make(at)).join("\n");
  const fence = one(["```", "~~~"]);
  const block = () =>
    one([
      () => `${"#".repeat(1 + next(3))} ${words()}`,
      () => lines(3, () => `${line()}.`),
      () => lines(4, () => `- ${line()}`),
      () => `- ${line()}\n${lines(3, () => `  - ${line()}`)}`,
      () => lines(4, (at) => `${at + 1}. ${line()}`),
      () => lines(3, () => `> ${line()}`),
      () => `| ${words(2)} | ${words(2)} |\n|---|--:|\n${lines(3, () => `| ${words(3)} | ${next(99)} |`)}`,
      () =>
        `${fence}${one(["js", "python", ""])}\n${lines(5, () => `${"  ".repeat(next(2))}${words()};`)}\n${fence}`,
      () => "---",
    ])();
  return `${Array.from({ length: 3 + next(7) }, block).join("\n\n")}\n`;
}
