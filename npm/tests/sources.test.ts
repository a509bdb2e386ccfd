import { describe, expect, it } from "vitest";
import { BlobFiles } from "../src/model-files.js";
import { modelSource } from "../src/sources.js";
import { fileHandle, folderEntry, folderHandle } from "./dropped-files.js";

const page = "https://example.org/app/index.html";
const bytes = new Uint8Array(8);

/** Files as a chosen folder has them. */
function chosen(folder: string, names: readonly string[]): File[] {
  return names.map((name) =>
    Object.defineProperty(new File(["x"], name), "webkitRelativePath", { value: `${folder}/${name}` }),
  );
}

const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, bytes]));

describe("modelSource of an address", () => {
  it.each([
    ["models/tiny/", "folder", "tiny", "https://example.org/app/models/tiny/"],
    ["models/tiny", "folder", "tiny", "https://example.org/app/models/tiny/"],
    ["/a%20b/", "folder", "a b", "https://example.org/a%20b/"],
    ["/100%/", "folder", "100%", "https://example.org/100%/"],
    ["https://hub.example/o/m/resolve/main", "folder", "main", "https://hub.example/o/m/resolve/main/"],
    ["tiny.safetensors", "file", "tiny.safetensors", "https://example.org/app/tiny.safetensors"],
    ["/m.safetensors?token=1", "file", "m.safetensors", "https://example.org/m.safetensors?token=1"],
    ["m.setun", "file", "m.setun", "https://example.org/app/m.setun"],
    ["M.GGUF", "file", "M.GGUF", "https://example.org/app/M.GGUF"],
    ["/m/model.onnx", "file", "model.onnx", "https://example.org/m/model.onnx"],
    ["/m/onnx/model.onnx", "file", "onnx/model.onnx", "https://example.org/m/onnx/model.onnx"],
    ["/m-00002-of-00003.gguf", "file", "m-00002-of-00003.gguf", "https://example.org/m-00002-of-00003.gguf"],
  ])("distinguishes folders from files: %s", async (address, layout, name, url) => {
    expect(await modelSource(address, page)).toEqual({ kind: "url", layout, name, url });
  });

  it("takes any protocol that a page may have", async () => {
    const found = await modelSource("models/tiny", "tauri://localhost/index.html");
    expect(found).toMatchObject({ kind: "url", url: "tauri://localhost/models/tiny/" });
  });

  it.each([
    ["/m/pytorch_model.bin", "bad-checkpoint", /is a pickle.*safe_serialization/],
    ["http://", "bad-option", /is not a URL/],
    ["blob:https://example.org/7c1f", "bad-option", /found blob:; pass the bytes by file name/],
    ["data:application/octet-stream,x", "bad-option", /found data:; pass the bytes by file name/],
    ["javascript:alert(1)", "bad-option", /expected an http or https URL, found javascript:$/],
  ])("refuses %s", async (address, code, message) => {
    const expected = { code, message: expect.stringMatching(message) };
    await expect(modelSource(address, page)).rejects.toMatchObject(expected);
  });
});

describe("modelSource of files", () => {
  it("accepts a chosen folder, without the folder's name in paths", async () => {
    const source = await modelSource(chosen("tiny", ["config.json", "model.safetensors"]), page);
    expect(source).toMatchObject({ kind: "blobs", layout: "folder", name: "tiny" });
    expect(source.kind === "blobs" && [...source.blobs.keys()]).toEqual(["config.json", "model.safetensors"]);
  });

  it.each([
    [["m.safetensors", "tokenizer.json"], "m.safetensors"],
    [["m.gguf"], "m.gguf"],
    [["README.md", "m.GGUF", "._m.GGUF", ".DS_Store"], "m.GGUF"],
    [["m-00002-of-00003.gguf", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"], "m-00001-of-00003.gguf"],
    [["m-00003-of-00003.gguf", "m-00002-of-00003.gguf"], "m-00002-of-00003.gguf"],
    [["m.setun", "m-00002-of-00002.setun"], "m.setun"],
    [["m.setun", "a.gguf", "b.gguf"], "m.setun"],
    [["config.json", "other.safetensors"], "other.safetensors"],
    [["config.json", "pytorch_model.bin", "m.gguf"], "m.gguf"],
    [["m.gguf", "below/n.gguf"], "m.gguf"],
    [["config.json", "m.onnx", "m.onnx_data"], "m.onnx"],
    [["config.json", "m.gguf", "onnx/model.onnx"], "onnx/model.onnx"],
    [["m.gguf", "onnx/other.onnx"], "m.gguf"],
  ])("finds the model among %j", async (names, name) => {
    const expected = { layout: "file", name };
    expect(await modelSource(named(names), page)).toMatchObject({ kind: "blobs", ...expected });
    expect(await modelSource(chosen("folder", names), page)).toMatchObject({ kind: "blobs", ...expected });
    expect(await modelSource(folderHandle("folder", names), page)).toMatchObject({
      kind: "handle",
      ...expected,
    });
  });

  it("accepts a file and items of a drop event", async () => {
    const file = new File([bytes], "m.gguf");
    const lone = { kind: "blobs", layout: "file", name: "m.gguf" };
    expect(await modelSource(file, page)).toMatchObject(lone);
    expect(await modelSource(fileHandle("m.gguf"), page)).toMatchObject({ ...lone, kind: "handle" });
    const entry = folderEntry("dropped", ["config.json", "model.safetensors", "below/x.txt"]);
    const folder = { kind: "blobs", layout: "folder", name: "dropped" };
    expect(await modelSource(entry, page)).toMatchObject(folder);
    const items = [{ getAsFile: () => null, webkitGetAsEntry: () => entry }];
    expect(await modelSource(items as never, page)).toMatchObject(folder);
    const alone = [{ getAsFile: () => file, webkitGetAsEntry: () => null }];
    expect(await modelSource(alone as never, page)).toMatchObject(lone);
  });

  it("reads dropped items before it waits", () => {
    let looked = false;
    const look = () => {
      looked = true;
      return new File([bytes], "m.gguf");
    };
    void modelSource([{ getAsFile: look }] as never, page);
    expect(looked).toBe(true);
  });

  it.each([
    [{}, "not-found", /found no files/],
    [[], "not-found", /found no files/],
    [{ "config.json": "{}" }, "bad-option", /config\.json.*Uint8Array/],
    [["config.json"], "bad-option", /a list of files/],
    [[new Blob([])], "bad-option", /no name/],
    [[new Uint8Array(3)], "bad-option", /found a value of class Uint8Array; pass the bytes by file name/],
    [7, "bad-option", /found 7$/],
    [null, "bad-option", /found null$/],
    [Promise.resolve(new Blob([])), "bad-option", /found a value of class Promise; await it first/],
    [new Uint8Array(3), "bad-option", /found a value of class Uint8Array; pass the bytes by file name/],
    [new ArrayBuffer(3), "bad-option", /found a value of class ArrayBuffer; pass the bytes by file name/],
    [
      new Response("x"),
      "bad-option",
      /found a value of class Response; pass its URL, or its bytes.*\.blob\(\)/,
    ],
    [{ "a.gguf": new Response("x") }, "bad-option", /a\.gguf.*found a value of class Response/],
    [{ "a.gguf": [1, 2] }, "bad-option", /a\.gguf.*expected a Uint8Array.*found \[1,2\]/],
    [
      named(["config.json", "tokenizer.json"]),
      "not-found",
      /found config\.json, tokenizer\.json; expected a \.setun/,
    ],
    [named(["a.gguf", "b.gguf"]), "not-found", /a\.gguf, b\.gguf; expected one model/],
    [named(["config.json", "pytorch_model.bin"]), "bad-checkpoint", /pytorch_model\.bin is a pickle/],
    [named(["below/m.gguf"]), "not-found", /found below\/m\.gguf; expected/],
    [named(Array.from({ length: 20 }, (_, i) => `${i}.txt`)), "not-found", /7\.txt and 12 more/],
    [folderHandle("empty", []), "not-found", /no files/],
  ])("refuses %#", async (source, code, message) => {
    const expected = { code, message: expect.stringMatching(message) };
    await expect(modelSource(source as never, page)).rejects.toMatchObject(expected);
  });
});

describe("BlobFiles", () => {
  const files = new BlobFiles(new Map([["a", new Blob([Uint8Array.of(1, 2, 3, 4)])]]));

  it("reads ranges and whole files, and reports missing files", async () => {
    expect(await files.read("a", { start: 1, end: 3 })).toEqual(Uint8Array.of(2, 3));
    expect(await files.read("a", undefined)).toEqual(Uint8Array.of(1, 2, 3, 4));
    expect(await files.read("b", undefined)).toBeUndefined();
    expect(files.totalBytes()).toBe(4);
  });

  it("returns fewer bytes at the end of the file", async () => {
    expect(await files.read("a", { start: 3, end: 9 })).toEqual(Uint8Array.of(4));
  });
});
