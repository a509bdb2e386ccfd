import { describe, expect, it } from "vitest";
import { now, parseManifest, printManifest, withFiles } from "../src/store/manifest.js";
import { BEGUN, CHUNKS, MANIFEST, WHOLE } from "./store-fixtures.js";

const whole = parseManifest(MANIFEST, "m");

describe("a manifest", () => {
  it("has the contents of the command line's", () => {
    expect(whole).toEqual({
      model: "127.0.0.1_8765/models/whole.gguf",
      revision: "a35af6585a9e5b44",
      source: "http://127.0.0.1:8765/models/whole.gguf",
      pulled: "2026-11-21T21:41:28Z",
      complete: true,
      files: [
        {
          name: "whole.gguf",
          bytes: 2_621_440,
          etag: '"abc"',
          sha256: WHOLE,
          chunkBytes: 1 << 20,
          chunks: [...CHUNKS],
        },
      ],
    });
  });

  it.each([MANIFEST, BEGUN, MANIFEST.replace('"pulled"', '"licence": "mit",\n  "pulled"')])(
    "has the bytes of the command line's",
    (text) => {
      const manifest = parseManifest(text, "m");
      expect(manifest && printManifest(manifest)).toBe(text);
    },
  );

  it("may begin with a byte order mark", () => {
    expect(parseManifest(`\uFEFF${MANIFEST}`, "m")).toEqual(whole);
  });

  it("may lack optional fields", () => {
    const text = MANIFEST.replace(/"etag": .*\n/, "").replace(/"sha256": .*\n/, "");
    const [file] = parseManifest(text.replace(/,\s*"chunk_bytes"[^\]]*\]/, ""), "m")?.files ?? [];
    expect(file).toEqual({ name: "whole.gguf", bytes: 2_621_440, chunkBytes: 0, chunks: [] });
  });

  it.each([
    ["cut off", MANIFEST.slice(0, -20)],
    ["empty", ""],
    ["no object", "[]"],
    ["without a version", MANIFEST.replace('"format": 1,', "")],
    ["a version of no number", MANIFEST.replace('"format": 1', '"format": "2"')],
    ["without files", MANIFEST.replace('"files"', '"other"')],
    ["not said to be complete", MANIFEST.replace('"complete": true', '"complete": 1')],
    ["a file outside", MANIFEST.replace('whole.gguf",\n      "bytes', '../x.gguf",\n      "bytes')],
    ["a negative size", MANIFEST.replace('"bytes": 2621440', '"bytes": -1')],
    ["a chunk too few", MANIFEST.replace(`"${CHUNKS[0]}",`, "")],
    ["a chunk that is no digest", MANIFEST.replace(CHUNKS[0], "abc")],
    ["a digest that is none", MANIFEST.replace(WHOLE, "abc")],
    ["chunks of a size that none has", MANIFEST.replace("1048576", "1000")],
    ["a file twice", MANIFEST.replace(/"files": (\[.*\])/s, (_, files) => `"files": ${twice(files)}`)],
  ])("is ignored if it is damaged: %s", (_, text) => {
    expect(text).not.toBe(MANIFEST);
    expect(parseManifest(text, "m")).toBeUndefined();
  });

  it("of a later version is refused", () => {
    const text = '{"format": 7, "model": ["unknown"]}';
    const error = {
      code: "bad-checkpoint",
      message: expect.stringMatching(/^m: it has format 7, expected 1; .*delete/),
    };
    expect(() => parseManifest(text, "m")).toThrow(expect.objectContaining(error));
  });

  it("sorts added files by name", () => {
    if (whole === undefined) throw new Error("the fixture cannot be read");
    const file = { name: "a.json", bytes: 1, chunkBytes: 0, chunks: [] };
    const more = withFiles(whole, [
      file,
      { ...file, name: "z.json" },
      { ...file, name: "whole.gguf", bytes: 2 },
    ]);
    const found = more.files.map(({ name, bytes }) => [name, bytes]);
    expect(found).toEqual([
      ["a.json", 1],
      ["whole.gguf", 2],
      ["z.json", 1],
    ]);
    expect(whole.files.length).toBe(1);
  });

  it("has times in the command line's format", () => {
    expect(now()).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });
});

function twice(files: string): string {
  const [only] = JSON.parse(files);
  return JSON.stringify([only, only]);
}
