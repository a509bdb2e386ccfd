import { execFileSync } from "node:child_process";
import { mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DiskFiles } from "../src/disk-files.js";

const text = (bytes: Uint8Array | undefined) => bytes && new TextDecoder().decode(bytes);

describe("DiskFiles", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "setun-"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  const files = () =>
    new DiskFiles({ kind: "url", layout: "folder", name: "m", url: `${pathToFileURL(folder).href}/` });

  it("reads ranges and whole files", async () => {
    await writeFile(join(folder, "m.gguf"), "content");
    const disk = files();
    expect(text(await disk.read("m.gguf", { start: 3, end: 99 }))).toBe("tent");
    expect(text(await disk.read("m.gguf", { start: 7, end: 8 }))).toBe("");
    expect(text(await disk.read("m.gguf", undefined))).toBe("content");
    expect(await disk.read("other", undefined)).toBeUndefined();
    await disk.close();
  });

  it("refuses what is no file before it is opened", async () => {
    execFileSync("mkfifo", [join(folder, "pipe")]);
    await symlink("/dev/zero", join(folder, "device"));
    const disk = files();
    for (const name of ["pipe", "device", "."]) {
      const expected = { code: "io", message: expect.stringContaining("it is no file") };
      await expect(disk.read(name, undefined)).rejects.toMatchObject(expected);
    }
  });

  it("refuses a terabyte of nothing as a file that is read whole", async () => {
    await writeFile(join(folder, "tokenizer.json"), "");
    await truncate(join(folder, "tokenizer.json"), 2 ** 40);
    const disk = files();
    const expected = { code: "io", message: expect.stringContaining("at most 268435456 are read") };
    await expect(disk.read("tokenizer.json", undefined)).rejects.toMatchObject(expected);
    expect(await disk.read("tokenizer.json", { start: 0, end: 3 })).toEqual(new Uint8Array(3));
    await disk.close();
  });
});
