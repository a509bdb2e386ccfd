/** Sizes of the adapters against `docs/adapters.md`. */

import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const FOLDER = new URL("../src/adapters/", import.meta.url);
const PAGE = readFileSync(new URL("../../docs/adapters.md", import.meta.url), "utf8");

/** Most lines of a file. */
const FILE = 300;

/** Files of no adapter alone. */
const COMMON = ["core.ts", "steps.ts"];

const lines = (file: string) => readFileSync(new URL(file, FOLDER), "utf8").split("\n").length - 1;

it("has no adapter and no file of one that is larger than documented", () => {
  const files = readdirSync(FOLDER).filter((file) => !file.endsWith("-types.ts"));
  for (const file of files) expect(lines(file), file).toBeLessThanOrEqual(FILE);
  const rows = PAGE.matchAll(/^\| (?:`([\w-]+)`|all, common) \| (\d+) \|/gm);
  const counted = Array.from(rows, ([, adapter, most]) => {
    const isOf = (file: string) =>
      adapter === undefined ? COMMON.includes(file) : file.startsWith(adapter) && !COMMON.includes(file);
    const own = files.filter(isOf);
    const sum = own.reduce((sum, file) => sum + lines(file), 0);
    expect(sum, adapter).toBeLessThanOrEqual(Number(most));
    return own;
  });
  expect(counted.flat().sort()).toEqual(files.sort());
});

it("has no file of the adapter with several endpoints that is larger than documented", () => {
  const rows = PAGE.matchAll(/^\| `(openai[\w-]*\.ts)` \| (\d+) \|/gm);
  const listed = Array.from(rows, ([, file = "", most]) => {
    expect(lines(file), file).toBeLessThanOrEqual(Number(most));
    return file;
  });
  const isOwn = (file: string) => file.startsWith("openai") && !file.endsWith("-types.ts");
  expect(listed.sort()).toEqual(readdirSync(FOLDER).filter(isOwn).sort());
});
