import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  hubModelId,
  isSafeFile,
  isSafeFolderName,
  modelIdText,
  parseName,
  revisionPath,
  safeFolderName,
  urlModelId,
} from "../src/store/names.js";
import { unsignedQuery } from "../src/store/signed-url.js";

/** Queries, and what is left of each. */
const SIGNED_QUERIES = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/signed-queries.json", import.meta.url), "utf8"),
);

const of = async (address: string) => modelIdText(await urlModelId(address));

describe("parseName", () => {
  const repository = { kind: "hub", owner: "o", name: "n-1.58" };

  it.each([
    ["o/n-1.58", { location: repository }],
    ["o/n-1.58@refs/pr/1", { location: { ...repository, revision: "refs/pr/1" } }],
    ["o/n-1.58:a/b.gguf", { location: repository, file: "a/b.gguf" }],
    ["o/n-1.58@v1:b.gguf", { location: { ...repository, revision: "v1" }, file: "b.gguf" }],
    ["h.org_80/o/n-1.58", { location: { ...repository, host: "h.org_80" } }],
    ["small", { location: { kind: "alias", alias: "small" } }],
    ["small:b.gguf", { location: { kind: "alias", alias: "small" }, file: "b.gguf" }],
    ["http://h:80/a/b", { location: { kind: "address", address: "http://h:80/a/b" } }],
    ["https://h/a#b", { location: { kind: "address", address: "https://h/a" } }],
  ])("takes %s apart", (text, expected) => {
    expect(parseName(text)).toEqual(expected);
  });

  it.each(
    [
      "",
      "/",
      "a/",
      "../b",
      "a/..",
      "a/b/c/d",
      "a b/c",
      "a/b:",
      "a/b:../c",
      "a/con",
      "https://",
      "a/b@",
    ].concat([
      "small@v1",
      "a/b@v\n1",
      "https://me:secret@h/a",
      ".a/b",
      "a/b.",
      "a/COM1.x",
      `a/${"b".repeat(97)}`,
    ]),
  )("refuses %j", (text) => {
    expect(() => parseName(text)).toThrow(expect.objectContaining({ code: "bad-option" }));
  });
});

describe("folders of models", () => {
  it.each([
    ["http://127.0.0.1:80/models/x.gguf", "127.0.0.1_80/models/x.gguf"],
    ["https://h/x/", "h/_/x"],
    ["https://H/a/b/c", "h/a--b/c"],
    // As `setun models pull` has named them.
    ["http://127.0.0.1:8765/x.gguf?secret=1", "127.0.0.1_8765/_/x.gguf-ecf2848c"],
    ["http://[::1]:8766/x.gguf", "___1__8766-dbbdc9ed-dbbdc9ed/_/x.gguf"],
    ["http://127.0.0.1:8765/ä.gguf", "127.0.0.1_8765/_/_.gguf-eaaf5fa0"],
    [`http://127.0.0.1:8765/${"n".repeat(120)}.gguf`, `127.0.0.1_8765/_/${"n".repeat(96)}-41c64244`],
  ])("are those of the command line: %s", async (address, expected) => {
    expect(await of(address)).toBe(expected);
  });

  it.each<[string, string]>(SIGNED_QUERIES)("leave out the signature of %s", (query, kept) => {
    expect(unsignedQuery(query)).toBe(kept);
  });

  it("are the same for each signature of a file", async () => {
    expect(await of("https://h/a/x.gguf?X-Amz-Signature=1")).toBe(await of("https://h/a/x.gguf"));
    expect(await of("https://h/x.gguf?v=2&sig=1&se=2")).toBe(await of("https://h/x.gguf?v=2"));
  });

  it("differ for different URLs, and are valid", async () => {
    const ends = ["/a b", "/a_b", "/a%20b", "/a?b", "/a?c", "/..", "/con", "/a/", ":1/a", "_1/a"];
    const names = await Promise.all(ends.map((end) => of(`https://h${end}`)));
    for (const name of names) expect(name.split("/").every(isSafeFolderName), name).toBe(true);
    expect(new Set(names).size).toBe(ends.length);
  });

  it("of a Hub are those of its URL", async () => {
    const id = await hubModelId("https://huggingface.co", "o", "n");
    expect(modelIdText(id)).toBe("huggingface.co/o/n");
    expect(await of("https://huggingface.co/o/n")).toBe("huggingface.co/o/n");
    expect(modelIdText(await hubModelId("http://localhost:8080/x", "o", "n"))).toBe("localhost_8080/o/n");
  });

  it("of revisions stay in the model's folder", async () => {
    const id = { host: "h", owner: "o", name: "n" };
    expect(await revisionPath(id, "a35af6585a9e5b44")).toBe("models/h/o/n/a35af6585a9e5b44");
    for (const revision of ["..", "refs/pr/1", "a\\b", "", "../../x"]) {
      const folder = (await revisionPath(id, revision)).slice("models/h/o/n/".length);
      expect(isSafeFolderName(folder), folder).toBe(true);
    }
  });

  it("of different texts differ", async () => {
    const texts = [
      "a/b",
      "a_b",
      "a\\b",
      "a:b",
      "A_b",
      "x".repeat(97),
      "x".repeat(98),
      "😀",
      "😁",
      ".a",
      "a.",
    ];
    const names = await Promise.all(texts.map(safeFolderName));
    expect(new Set(names).size).toBe(texts.length);
    expect(names[1]).toBe("a_b");
  });
});

describe("isSafeFile", () => {
  it.each(["config.json", "onnx/model.onnx", "model-00001-of-00002.safetensors", "ä b%20.gguf"])(
    "%s",
    (name) => {
      expect(isSafeFile(name)).toBe(true);
    },
  );

  it.each(
    [
      "",
      "..",
      "../x",
      "a/../b",
      "/a",
      "a//b",
      "a\\b",
      "c:x",
      ".git",
      "manifest.json",
      "x.part",
      "nul.txt",
    ].concat(["a/b/c/d/e", "x.chunks", "x.tmp", "a.", "a ", "a\nb", "a?b", "\ud800", "ä".repeat(97)]),
  )("not %j", (name) => {
    expect(isSafeFile(name)).toBe(false);
  });
});
