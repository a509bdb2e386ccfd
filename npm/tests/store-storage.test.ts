import { describe, expect, it } from "vitest";
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
