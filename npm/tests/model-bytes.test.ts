import { expect, it } from "vitest";
import { type LoadProgress, steadyProgress } from "../src/load-progress.js";
import { ModelBytes } from "../src/model-bytes.js";
import { openStreamed } from "../src/open-model.js";

const INDEX = "model.safetensors.index.json";

/** Progress of a load that reads files one after the other, in pieces of 100 bytes. */
async function progressOf(contents: Record<string, string>): Promise<LoadProgress[]> {
  const files = Object.entries(contents);
  const blobs = new Map(files.map(([name, text]) => [name, new Blob([text])]));
  const source = { kind: "blobs", layout: "folder", name: "m", blobs } as const;
  const reported: LoadProgress[] = [];
  const bytes = new ModelBytes((signal) => openStreamed(source, { store: false }, signal));
  bytes.onProgress = steadyProgress((progress) => reported.push(progress));
  for (const [name, { length }] of files) {
    const isText = name.endsWith(".json");
    for (let start = 0; start < length; start += isText ? length : 100) {
      const end = Math.min(start + 100, length);
      await bytes.read(name, isText ? undefined : start, isText ? undefined : end, true);
    }
  }
  await bytes.end();
  return reported;
}

const shard = (length: number) => "w".repeat(length);

it.each([
  ["an index", { [INDEX]: JSON.stringify({ weight_map: { a: "x.safetensors", b: "y.safetensors" } }) }],
  ["an index in a folder", { [`s/${INDEX}`]: '{"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}' }],
])("has the total of all parts that %s names from the first of them on", async (_, index) => {
  const folder = Object.keys(index)[0]?.replace(INDEX, "") ?? "";
  const parts = { [`${folder}x.safetensors`]: shard(300), [`${folder}y.safetensors`]: shard(500) };
  const contents = { "config.json": "{}", ...index, ...parts };
  const total = Object.values(contents).reduce((sum, { length }) => sum + length, 0);
  const reported = await progressOf(contents);
  const ofWeights = reported.filter(({ file }) => file.endsWith(".safetensors"));
  expect(ofWeights.map(({ totalBytes }) => totalBytes)).toEqual(Array(8).fill(total));
  expect(ofWeights.at(-1)?.loadedBytes).toBe(total);
});

it.each(["gguf", "safetensors"])("has the total of the numbered parts of %s", async (end) => {
  const names = [1, 2, 3].map((number) => `m-0000${number}-of-00003.${end}`);
  const reported = await progressOf(Object.fromEntries(names.map((name) => [name, shard(200)])));
  expect(reported.map(({ totalBytes }) => totalBytes)).toEqual(Array(6).fill(600));
});

it.each(["{", '{"weight_map":{"a":"../x"}}'])("leaves a wrong index to the engine: %s", async (index) => {
  const reported = await progressOf({ [INDEX]: index, "x.safetensors": shard(100) });
  expect(reported.at(-1)?.totalBytes).toBe(100 + index.length);
});
