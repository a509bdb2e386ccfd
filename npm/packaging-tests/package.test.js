/** The packed package as tools for packages see it: its manifest, the declarations of each entry point, and its size. */

import { readFileSync } from "node:fs";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { expect, it } from "vitest";
import { TARBALL } from "../test-support/project.js";

/** Most bytes of the tarball, a little more than it has. Builds and the story model are most of it. */
const BUDGET = 10_200_000;

/** An ECMAScript module is no concern of these: they know no `exports`, or only CommonJS. */
const WITHOUT_MODULES = ["node10", "node16-cjs"];

const bytes = new Uint8Array(readFileSync(TARBALL));

it("is within its budget", () => {
  expect(bytes.length).toBeLessThan(BUDGET);
});

it("has no findings of publint", async () => {
  const { messages } = await publint({ pack: { tarball: bytes.buffer }, strict: true });
  expect(messages).toEqual([]);
});

it("has declarations for every entry point, as attw sees them", async () => {
  const { entrypoints, problems } = /** @type {any} */ (
    await checkPackage(createPackageFromTarballData(bytes))
  );
  const { "./wasm/*": _, "./package.json": __, ...typed } = entrypoints;
  for (const [name, { resolutions }] of Object.entries(typed))
    for (const kind of ["node16-esm", "bundler"])
      expect(resolutions[kind].resolution?.isTypeScript, `${name}, ${kind}`).toBe(true);
  const found = problems.filter(
    (/** @type {any} */ { resolutionKind }) => !WITHOUT_MODULES.includes(resolutionKind),
  );
  expect(found).toEqual([]);
});

it("has the names of its entry points for resolvers that know no exports", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const { ".": main, "./wasm/*": _, "./package.json": __, ...others } = manifest.exports;
  const files = Object.entries(others).map(([name, { default: file }]) => [name, file]);
  expect(manifest.alias).toEqual(Object.fromEntries(files));
  expect(manifest.module).toBe(main.default);
});
