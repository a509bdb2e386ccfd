import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { resolveInNode } from "../src/node-names.js";
import { modelSource } from "../src/sources.js";
import { printManifest } from "../src/store/manifest.js";

let folder: string;
let home: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "setun-"));
  home = join(folder, "store");
  vi.stubEnv("SETUN_HOME", home);
  vi.spyOn(process, "cwd").mockReturnValue(folder);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

/** Puts a model of one file into the store, as `setun models pull` does. */
async function store(owner: string, name: string, file: string): Promise<string> {
  const path = join(home, "models/huggingface.co", owner, name, "c0ffee");
  await mkdir(path, { recursive: true });
  await writeFile(join(path, file), "weights");
  const entry = { name: file, bytes: 7, chunkBytes: 0, chunks: [] };
  const about = { revision: "c0ffee", source: "https://huggingface.co", pulled: "2026-11-21T17:00:00Z" };
  const model = `huggingface.co/${owner}/${name}`;
  const manifest = printManifest({ model, ...about, complete: true, files: [entry] });
  await writeFile(join(path, "manifest.json"), manifest);
  return pathToFileURL(join(path, file)).href;
}

const resolved = async (source: string | URL) => String(await resolveInNode(source));

it("takes paths as the command does", async () => {
  await mkdir(join(folder, "owner/lone"), { recursive: true });
  await mkdir(join(folder, "a b"));
  await writeFile(join(folder, "owner/lone/m.gguf"), "");
  await writeFile(join(folder, "a b/m.setun"), "");
  const lone = pathToFileURL(join(folder, "owner/lone/m.gguf")).href;
  for (const name of ["owner/lone", "./owner/lone", "owner/lone/m.gguf", join(folder, "owner/lone")]) {
    expect(await resolved(name), name).toBe(lone);
  }
  const spaced = pathToFileURL(join(folder, "a b/m.setun")).href;
  for (const name of ["a b/m.setun", "a%20b/m.setun", "a b", pathToFileURL(join(folder, "a b"))]) {
    expect(await resolved(name), String(name)).toBe(spaced);
  }
});

it("finds stored models by their names and aliases, before the Hub", async () => {
  const url = await store("owner", "name", "m.gguf");
  const bonsai = await store("prism-ml", "Ternary-Bonsai-4B-gguf", "other.gguf");
  const aliases = { mine: "owner/name", ours: "mine", "bitnet-2b-4t": "owner/name" };
  await writeFile(join(home, "aliases.json"), JSON.stringify({ format: 1, aliases }));
  const names = ["owner/name", "hf:owner/name", "owner/name:m.gguf", "owner/name@c0ffee", "mine", "ours"];
  for (const name of [...names, "bitnet-2b-4t"]) expect(await resolved(name), name).toBe(url);
  expect(await resolved("prism-ml/Ternary-Bonsai-4B-gguf")).toBe(bonsai);
  const source = await modelSource("mine", "file:///", {}, "source", resolveInNode);
  expect(source).toMatchObject({ kind: "url", layout: "file", name: "m.gguf", url });
});

it("refuses a stored model that is damaged, and says how to repair it", async () => {
  const path = fileURLToPath(await store("owner", "name", "m.gguf"));
  const manifest = join(path, "../manifest.json");
  const hash = createHash("sha256").update("weights").digest("hex");
  const text = (await readFile(manifest, "utf8")).replace('"bytes": 7', `"bytes": 7, "sha256": "${hash}"`);
  await writeFile(manifest, text);
  expect(await resolveInNode("owner/name", true)).toEqual(pathToFileURL(path));
  const expectDamaged = (name: string, verify: boolean, reason: string) =>
    expect(resolveInNode(name, verify)).rejects.toMatchObject({
      code: "bad-checkpoint",
      message: `${path} is damaged: ${reason}; \`setun models pull --verify huggingface.co/owner/name\` downloads what is wrong with it again`,
    });
  await writeFile(path, "Weights");
  expect(await resolveInNode("owner/name")).toEqual(pathToFileURL(path));
  await expectDamaged("owner/name", true, "it has another SHA-256");
  await writeFile(path, "weight");
  for (const name of ["owner/name", "hf:owner/name", "hf:owner/name@c0ffee"])
    await expectDamaged(name, false, "it has 6 bytes, expected 7");
  await rm(path);
  await expectDamaged("owner/name", false, "it is missing");
});

it("leaves what is to be fetched", async () => {
  for (const name of ["bitnet-2b-4t", "hf:owner/name", "https://h/m.gguf", "http://h/folder"]) {
    expect(await resolved(name)).toBe(name);
  }
});

it.each([
  ["bitnet-2b4t", /no model "bitnet-2b4t": .*did you mean "bitnet-2b-4t"\?$/],
  ["bitnet-b1.58-2B-4T", /did you mean "microsoft\/bitnet-b1.58-2B-4T"\?$/],
  ["stories", /models\.catalog has the short names$/],
  ["owner/name", /"hf:owner\/name" loads it from the Hub, `setun models pull owner\/name` keeps it here$/],
  ["microsoft/bitnet-b1.58-2B4T", /did you mean "microsoft\/bitnet-b1.58-2B-4T"\? "hf:microsoft/],
  ["./nope", /no model at .*\/nope: expected a \.setun.*, found nothing; .* has here\.txt$/],
  ["nope/deeper/m.gguf", /found nothing; there is no folder .*\/nope\/deeper either$/],
  ["file:///no/such/model", /no model at \/no\/such\/model: .*there is no folder \/no\/such either$/],
  [".", /source: .* has here\.txt; expected a \.setun/],
])("says where it looked for %s", async (name, message) => {
  await writeFile(join(folder, "here.txt"), "");
  const thrown = await resolveInNode(name).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: "not-found", message: expect.stringMatching(message) });
  if (!name.includes("/") && name !== ".") {
    const searched = `(${folder} has here.txt), nor such a model in the store at ${home};`;
    expect(thrown).toMatchObject({ message: expect.stringContaining(searched) });
  }
  const draft = modelSource(name, "file:///", {}, "speculative.draft", resolveInNode);
  await expect(draft).rejects.toThrow(/^speculative\.draft: /);
});
