import { describe, expect, it } from "vitest";
import { type Chunk, ChunkedBlob, keepLastChunk } from "../src/store/chunked-blob.js";
import { completeLines, lineBytes } from "../src/store/journal.js";
import { MemoryStorage } from "./memory-storage.js";
import { CONTRACT } from "./storage-contract.js";

describe("the storage of the tests satisfies the contract", () => {
  it.each(Object.entries(CONTRACT))("%s", async (_, run) => {
    await run(new MemoryStorage(), "models/h/o/n");
  });

  it("has a quota", async () => {
    const storage = new MemoryStorage();
    storage.room = 100;
    const part = await storage.openPartial("a");
    await part.writeChunk(0, new Uint8Array(40), '{"chunk":0}');
    await expect(part.writeChunk(40, new Uint8Array(60), '{"chunk":1}')).rejects.toMatchObject({
      code: "storage-full",
    });
    expect(part.lines).toEqual(['{"chunk":0}']);
  });
});

describe("lines of a journal", () => {
  const lines = ['{"a":1}', '{"ä":2}', "[3]"];

  it("are read up to the last complete line", () => {
    const bytes = lineBytes(lines);
    for (let length = 0; length <= bytes.length; length += 1) {
      const found = completeLines(bytes.subarray(0, length));
      expect(found.lines).toEqual(lines.slice(0, found.lines.length));
      expect(found.bytes).toBe(lineBytes(found.lines).length);
      const whole = bytes.subarray(0, length).filter((byte) => byte === 0x0a).length;
      expect(found.lines.length).toBe(whole);
    }
  });
});

it("a chunk is read once for all parts of it in a row, and again after a failure", async () => {
  const reads: number[] = [];
  const read = async ({ start, end }: Chunk) => {
    if (reads.push(start) === 1) throw new Error("lost");
    return new Blob([new Uint8Array(end - start).map((_, index) => start + index)]);
  };
  const chunks = [0, 10, 20].map((start) => ({ start, end: start + 10 }));
  const blob = new ChunkedBlob(chunks, keepLastChunk(read));
  const bytesOf = async (start: number, end: number) => [...(await blob.slice(start, end).bytes())];
  await expect(bytesOf(0, 2)).rejects.toThrow("lost");
  expect(await bytesOf(0, 2)).toEqual([0, 1]);
  expect(await bytesOf(4, 5)).toEqual([4]);
  expect(await bytesOf(9, 11)).toEqual([9, 10]);
  expect(await bytesOf(12, 13)).toEqual([12]);
  expect(await bytesOf(0, 1)).toEqual([0]);
  expect(reads).toEqual([0, 0, 10, 0]);
});
