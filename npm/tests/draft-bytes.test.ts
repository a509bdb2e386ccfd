import { expect, it } from "vitest";
import { FileChangedError } from "../src/download/errors.js";
import { ModelAndDraftBytes } from "../src/draft-bytes.js";
import { SetunError } from "../src/errors.js";
import { ModelBytes } from "../src/model-bytes.js";
import type { ModelFiles } from "../src/model-files.js";
import { StreamedModel } from "../src/open-model.js";

const ENTRY = { layout: "file", name: "a" } as const;

/** Files of eight bytes each, as long as nothing is thrown. */
class Files implements ModelFiles {
  thrown: unknown;
  closed = 0;
  readonly #total: number | undefined;

  constructor(total: number | undefined) {
    this.#total = total;
  }

  async read(): Promise<Uint8Array> {
    if (this.thrown !== undefined) throw this.thrown;
    return new Uint8Array(8);
  }

  async expect(): Promise<void> {}

  totalBytes(): number | undefined {
    return this.#total;
  }

  where(name: string): string {
    return name;
  }

  async close(): Promise<void> {
    this.closed += 1;
  }
}

const bytesOf = (files: Files) => new ModelBytes(async () => new StreamedModel(ENTRY, () => files));
const read = (bytes: ModelBytes) => bytes.read("a", 0, 8, true);

it("reports a total only if both have one", async () => {
  const [model, draft] = [bytesOf(new Files(8)), bytesOf(new Files(undefined))];
  const both = new ModelAndDraftBytes(model, draft);
  const seen: unknown[] = [];
  both.onProgress = (progress) => seen.push(progress);
  for (const bytes of [draft, model]) await read(bytes);
  expect(seen).toEqual([
    { phase: "downloading", file: "a", loadedBytes: 8 },
    { phase: "downloading", file: "a", loadedBytes: 16 },
  ]);
});

it("attributes a change to the model that was read last", async () => {
  const [files, draftFiles] = [new Files(8), new Files(8)];
  const [model, draft] = [bytesOf(files), bytesOf(draftFiles)];
  const both = new ModelAndDraftBytes(model, draft);
  // The engine keeps the words of what is thrown, and says that it comes of the files.
  const networkFailure = new SetunError("network", "cannot read `a`");
  draftFiles.thrown = new FileChangedError("it became another");
  await expect(read(draft)).rejects.toBe(draftFiles.thrown);
  expect([both.hasChanged(networkFailure), both.originalError(networkFailure)]).toEqual([
    true,
    draftFiles.thrown,
  ]);
  files.thrown = new Error("the server is gone");
  await expect(read(model)).rejects.toBe(files.thrown);
  expect([both.hasChanged(networkFailure), both.originalError(networkFailure)]).toEqual([
    false,
    files.thrown,
  ]);
});

it("continues after a pause", async () => {
  const files = new Files(8);
  const bytes = bytesOf(files);
  await bytes.pause();
  await read(bytes);
  await bytes.pause();
  expect(files.closed).toBe(1);
  expect(await read(bytes)).toHaveLength(8);
});
