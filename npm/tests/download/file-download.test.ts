/** Order of operations on a download's file and manifest. */

import { expect, it, vi } from "vitest";
import { FileDownload } from "../../src/download/file-download.js";
import { HttpClient } from "../../src/download/http.js";
import { ManifestWriter } from "../../src/download/manifest-writer.js";
import { DEFAULT_SETTINGS } from "../../src/download/settings.js";
import type { Manifest } from "../../src/store/manifest.js";
import { readManifest } from "../../src/store/revisions.js";
import type { PartialFile } from "../../src/store/storage.js";
import { turns } from "../gate.js";
import { MemoryStorage } from "../memory-storage.js";

const { signal } = new AbortController();

const manifest: Manifest = {
  model: "h/o/n",
  revision: "r",
  source: "s",
  pulled: "2026-11-21T17:00:00Z",
  complete: false,
  files: [],
};

it("writes nothing to a closed partial file", async () => {
  const storage = new MemoryStorage();
  const part: PartialFile = await storage.openPartial("a.gguf");
  const write = vi.spyOn(part, "writeChunk");
  const clear = vi.spyOn(part, "clear");
  const planned = { name: "a.gguf", address: "http://h/a.gguf", bytes: 4 };
  const resumed = { part, header: { bytes: 4, chunkBytes: 4 }, chunks: new Map(), prefixes: new Map() };
  const download = new FileDownload(
    new HttpClient(DEFAULT_SETTINGS, signal),
    planned,
    resumed,
    signal,
    () => {},
  );
  const stored = download.storeChunk(0, new Uint8Array(4), true);
  await download.close("over");
  await expect(stored).rejects.toBe("over");
  await expect(download.reset()).rejects.toBe("over");
  await expect(download.read(0, 4)).rejects.toBe("over");
  expect(write).not.toHaveBeenCalled();
  expect(clear).not.toHaveBeenCalled();
});

it("writes manifests in order, and none after its end", async () => {
  const storage = new MemoryStorage();
  const controller = new AbortController();
  const known = new ManifestWriter(storage, "m", manifest, controller.signal);
  const write = storage.writeText.bind(storage);
  // The first write takes longer than a second one beside it would.
  const waits = [20, 0, 0];
  storage.writeText = async (path, text) => {
    await turns(waits.shift() ?? 0);
    await write(path, text);
  };
  const add = (name: string) => known.add({ name, bytes: 1, chunkBytes: 0, chunks: [] });
  await Promise.all([add("a"), add("b")]);
  const names = async () => (await readManifest(storage, "m"))?.files.map(({ name }) => name);
  expect(await names()).toEqual(["a", "b"]);
  const last = add("c");
  controller.abort("over");
  await expect(last).rejects.toBe("over");
  expect(await names()).toEqual(["a", "b"]);
});
