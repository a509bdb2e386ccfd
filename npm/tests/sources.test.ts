import { describe, expect, it } from "vitest";
import { BlobFiles } from "../src/model-files.js";
import { modelSource } from "../src/sources.js";

const page = "https://example.org/app/index.html";

describe("modelSource", () => {
  it.each([
    ["models/tiny/", "folder", "tiny", "https://example.org/app/models/tiny/"],
    ["models/tiny", "folder", "tiny", "https://example.org/app/models/tiny/"],
    ["/a%20b/", "folder", "a b", "https://example.org/a%20b/"],
    ["https://hub.example/o/m/resolve/main", "folder", "main", "https://hub.example/o/m/resolve/main/"],
    ["tiny.safetensors", "file", "tiny.safetensors", "https://example.org/app/tiny.safetensors"],
    ["/m.safetensors?token=1", "file", "m.safetensors", "https://example.org/m.safetensors?token=1"],
  ])("tells folders from files: %s", (address, layout, name, url) => {
    expect(modelSource(address, page)).toEqual({ kind: "url", layout, name, url });
  });

  it("takes a folder as the browser lists it, without the folder's own name", () => {
    const files = ["config.json", "model.safetensors"].map((name) => {
      const file = new File(["x"], name);
      return Object.defineProperty(file, "webkitRelativePath", { value: `tiny/${name}` });
    });
    const source = modelSource(files, page);
    expect(source).toMatchObject({ kind: "blobs", layout: "folder", name: "tiny" });
    expect(source.kind === "blobs" && [...source.blobs.keys()]).toEqual(["config.json", "model.safetensors"]);
  });

  it("takes one checkpoint without config.json as a lone file", () => {
    const source = modelSource(
      { "m.safetensors": new Uint8Array(8), "tokenizer.json": new Blob(["{}"]) },
      page,
    );
    expect(source).toMatchObject({ kind: "blobs", layout: "file", name: "m.safetensors" });
  });

  it.each([
    [{}, "not-found"],
    [[], "not-found"],
    [{ "config.json": "{}" }, "bad-option"],
    [["config.json"], "bad-option"],
    [7, "bad-option"],
    ["http://", "bad-option"],
  ])("refuses %j", (source, code) => {
    expect(() => modelSource(source as never, page)).toThrow(expect.objectContaining({ code }));
  });
});

describe("BlobFiles", () => {
  const files = new BlobFiles(new Map([["a", new Blob([Uint8Array.of(1, 2, 3, 4)])]]));

  it("reads ranges, whole files, and nothing where there is none", async () => {
    expect(await files.read("a", { start: 1, end: 3 })).toEqual(Uint8Array.of(2, 3));
    expect(await files.read("a", undefined)).toEqual(Uint8Array.of(1, 2, 3, 4));
    expect(await files.read("b", undefined)).toBeUndefined();
    expect(files.totalBytes()).toBe(4);
  });

  it("is short where the file ends", async () => {
    expect(await files.read("a", { start: 3, end: 9 })).toEqual(Uint8Array.of(4));
  });
});
