import { describe, expect, it } from "vitest";
import { droppedFiles } from "../src/dropped-files.js";
import { HandleFiles } from "../src/handle-files.js";
import { fileHandle, folderEntry, folderHandle } from "./dropped-files.js";

const text = (bytes: Uint8Array | undefined) => bytes && new TextDecoder().decode(bytes);

describe("HandleFiles", () => {
  it("opens files when they are read, in subfolders too", async () => {
    const handle = folderHandle("tiny", ["config.json", "below/deep/m.gguf"]);
    const files = new HandleFiles({ kind: "handle", layout: "folder", name: "tiny", handle });
    expect(text(await files.read("config.json", { start: 0, end: 6 }))).toBe("config");
    expect(text(await files.read("below/deep/m.gguf", undefined))).toBe("m.gguf");
    expect(await files.read("below/other", undefined)).toBeUndefined();
    expect(await files.read("other/m.gguf", undefined)).toBeUndefined();
    expect(files.totalBytes()).toBe("config.json".length + "m.gguf".length);
    expect(files.where("x")).toBe("x (in tiny)");
  });

  it("has one file for a file handle", async () => {
    const handle = fileHandle("m.gguf");
    const files = new HandleFiles({ kind: "handle", layout: "file", name: "m.gguf", handle });
    expect(text(await files.read("m.gguf", { start: 2, end: 99 }))).toBe("gguf");
    expect(await files.read("config.json", undefined)).toBeUndefined();
  });

  it("reports revoked access", async () => {
    const getFile = () => Promise.reject(new DOMException("not allowed", "NotAllowedError"));
    const handle = { kind: "file", name: "m.gguf", getFile } as never;
    const files = new HandleFiles({ kind: "handle", layout: "file", name: "m.gguf", handle });
    const expected = { code: "io", message: expect.stringContaining("choose the files again") };
    await expect(files.read("m.gguf", undefined)).rejects.toMatchObject(expected);
  });
});

describe("droppedFiles", () => {
  it("lists all batches of a folder", async () => {
    const names = ["a", "b", "c", "d", "below/e", "below/f/g"];
    const { folder, blobs } = await droppedFiles([folderEntry("top", names)]);
    expect(folder).toBe("top");
    expect([...blobs.keys()]).toEqual(names);
  });

  it("keeps folder names if several are dropped", async () => {
    const entries = [folderEntry("one", ["a"]), folderEntry("two", ["b"])];
    const { folder, blobs } = await droppedFiles(entries);
    expect([folder, ...blobs.keys()]).toEqual(["", "one/a", "two/b"]);
  });
});
