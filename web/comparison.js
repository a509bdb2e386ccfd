/** Measured speeds of setun and of other engines, read from `docs/performance.md`, as a module of the page. */

import { readFileSync } from "node:fs";

const ID = "virtual:comparison";
const RESOLVED = `\0${ID}`;
const PAGE = new URL("../docs/performance.md", import.meta.url);

/**
 * @typedef {{ name: string, speed: number }} Engine
 * @typedef {{ model: string, where: string, date: string, engines: Engine[] }} Comparison
 */

/** @returns {import("vite").Plugin} */
export function comparison() {
  return {
    name: "comparison",
    resolveId: (id) => (id === ID ? RESOLVED : undefined),
    load: (id) =>
      id === RESOLVED ? `export const COMPARISONS = ${JSON.stringify(readComparisons())};` : undefined,
  };
}

/** Tokens per second of decode. Fails if the document has another form. @returns {Comparison[]} */
export function readComparisons(text = readFileSync(PAGE, "utf8")) {
  const native = section(text, "Native engines");
  const browser = section(text, "Browser");
  const [shapes, story] = tables(browser);
  return [
    {
      model: "story",
      where: "in Chromium, one thread",
      date: dateIn(browser, /one Chromium, one thread.*?(\d{4}-\d\d-\d\d)/),
      engines: rows(story, "engine").flatMap(({ engine, "decode, tokens/s": cell = "" }) =>
        cell === "" ? [] : [{ name: engine ?? "", speed: numberIn(cell) }],
      ),
    },
    {
      model: "2b4t",
      where: "two threads",
      date: dateIn(native, /lab\/(\d{4}-\d\d-\d\d)-native-engines/),
      engines: [
        ...nativeDecode(native),
        ...rows(shapes, "shape")
          .filter(({ shape, threads }) => shape === "`2b4t`" && threads === "2")
          .map((row) => ({ name: "setun in Chromium", speed: numberIn(row["setun, relaxed"] ?? "") })),
      ],
    },
  ];
}

/** The row of decode after that of two threads. @param {string} text @returns {Engine[]} */
function nativeDecode(text) {
  const all = rows(tables(text)[0], "shape");
  const at = all.findIndex(({ shape, threads }) => shape === "`2b4t`" && threads === "2");
  const row = all[at + 1];
  if (row?.phase !== "decode") throw new Error("docs/performance.md: no decode of `2b4t` with two threads");
  const names = Object.keys(row).slice(3);
  return names.map((name) => ({
    name: name === "setun" ? "setun, native" : name,
    speed: numberIn(row[name] ?? ""),
  }));
}

/** @param {string} text @param {string} title */
function section(text, title) {
  const found = text.split(/^## /m).find((part) => part.startsWith(`${title}\n`));
  if (found === undefined) throw new Error(`docs/performance.md: no section "${title}"`);
  return found;
}

/** @param {string} text */
function tables(text) {
  return [...text.matchAll(/(?:^\|.*\|\n)+/gm)].map(([table]) => table);
}

/** Rows by the names of columns. @param {string | undefined} table @param {string} first name */
function rows(table, first) {
  const [head = [], , ...body] = (table ?? "")
    .trim()
    .split("\n")
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  if (head[0] !== first)
    throw new Error(`docs/performance.md: expected a column "${first}", found "${head[0]}"`);
  /** @type {Record<string, string>[]} */
  const named = body.map((cells) => Object.fromEntries(cells.map((cell, at) => [head[at] ?? "", cell])));
  return named;
}

/** @param {string} cell */
function numberIn(cell) {
  const value = Number.parseFloat(cell.replace(",", ""));
  if (!(value > 0)) throw new Error(`docs/performance.md: "${cell}" has no speed`);
  return value;
}

/** @param {string} text @param {RegExp} pattern */
function dateIn(text, pattern) {
  const date = pattern.exec(text)?.[1];
  if (date === undefined) throw new Error(`docs/performance.md: no date like ${pattern}`);
  return date;
}
