/** The page of capabilities against the members and options of the package. */

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { LOAD } from "../src/check-options.js";
import { GENERATE, SPECULATIVE } from "../src/generate-rules.js";
import { connectLocal } from "../src/host-links.js";
import { type Load, loadOn } from "../src/load.js";
import { Model } from "../src/model.js";
import type { Models } from "../src/models.js";
import { countedModel, emptyLog, fakeBuild } from "./fake-wasm.js";

const PAGE = document("capabilities.md");
const CONFIGURATION = document("configuration.md");

/** The members of `models`, as its type has them. */
const MODELS: Record<keyof Models, true> = {
  list: true,
  has: true,
  delete: true,
  estimate: true,
  catalog: true,
};

const NAMES = namesIn(PAGE);

/** An engine's options are those of `load`; the tables from "Prompt" on have those of requests. */
const [OF_ENGINES = "", OF_REQUESTS = ""] = CONFIGURATION.split("\n### Prompt\n");

const load: Load = loadOn({
  builds: ["simd128"],
  initialSharedPages: 0,
  hasWorkers: false,
  baseUrl: () => "http://localhost/",
  embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
  connect: async () => connectLocal({ build: fakeBuild(emptyLog()), openModel: countedModel(emptyLog()) }),
});

it("has only names that are there", async () => {
  const model = await load({ "a.safetensors": new Uint8Array(16) });
  const generation = model.generate("a", { maxTokens: 1 });
  const objects: Record<string, object> = { model, models: MODELS, session: model.session(), generation };
  for (const name of NAMES) {
    const [owner = "", member] = name.split(".");
    if (name === "load") continue;
    if (name.startsWith("setun/")) {
      expect(Object.keys(manifest.exports), name).toContain(name.replace("setun", "."));
      continue;
    }
    if (member === undefined) expect(Object.keys(GENERATE), name).toContain(name);
    else if (owner === "speculative") expect(Object.keys(SPECULATIVE), name).toContain(member);
    else if (owner === "load") expect(Object.keys(LOAD), name).toContain(member);
    else expect(objects[owner] && member in objects[owner], name).toBe(true);
  }
  expect(NAMES.length).toBeGreaterThan(60);
  await generation.result;
});

it("has every method of a model and of the store", () => {
  const methods = Object.getOwnPropertyNames(Model.prototype).filter((name) => name !== "constructor");
  for (const member of Object.keys(MODELS)) expect(NAMES).toContain(`models.${member}`);
  for (const method of methods) expect(NAMES).toContain(`model.${method}`);
});

it("has every option of a request and of load, here or in the tables of configuration.md", () => {
  const ofRequests = [...NAMES, ...namesIn(OF_REQUESTS)];
  const ofLoad = [...NAMES, ...namesIn(OF_ENGINES).map((key) => `load.${key}`)];
  // `speculative` is there by its own options.
  const isMissing = (names: string[], key: string) =>
    !names.some((name) => name === key || name.startsWith(`${key}.`));
  expect(Object.keys(GENERATE).filter((key) => isMissing(ofRequests, key))).toEqual([]);
  expect(Object.keys(LOAD).filter((key) => isMissing(ofLoad, `load.${key}`))).toEqual([]);
});

/** The names in the column of JavaScript of a page's tables. */
function namesIn(page: string): string[] {
  return page
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| capability"))
    .flatMap((line) => [...(line.split("|")[4] ?? "").matchAll(/`([^`]+)`/g)])
    .map(([, name = ""]) => name);
}

function document(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");
}
