import { describe, expect, it } from "vitest";
import {
  chunkCount,
  chunkLine,
  chunkRange,
  downloadedBytes,
  headerLine,
  linesWithoutChunks,
  prefixLine,
  readJournal,
  sameHeader,
  verifiedLine,
} from "../src/store/journal.js";
import { CHUNKS, JOURNAL, WHOLE } from "./store-fixtures.js";

const lines = JOURNAL.split("\n").slice(0, -1);
const header = { bytes: 2_621_440, chunkBytes: 1 << 20, identity: '"abc"' };

describe("a journal", () => {
  it("has the contents of the command line's", () => {
    expect(readJournal(lines)).toEqual({
      header,
      chunks: new Map([
        [2, CHUNKS[2]],
        [0, CHUNKS[0]],
      ]),
      prefixes: new Map(),
      order: [2, 0],
      lines: 3,
    });
  });

  it("has beginnings of chunks, the latest of each, until the chunk is there", () => {
    const [half, more] = [500_000, 600_000].map((bytes) => prefixLine(1, { bytes, sha256: WHOLE }));
    const begun = readJournal([...lines, half ?? "", more ?? ""]);
    expect(begun?.prefixes).toEqual(new Map([[1, { bytes: 600_000, sha256: WHOLE }]]));
    expect(begun && downloadedBytes(begun)).toBe(1_048_576 + 524_288 + 600_000);
    expect(begun && linesWithoutChunks(begun, new Set([2]))).toEqual([lines[0], lines[2], more]);
    const stored = readJournal([...lines, half ?? "", chunkLine(1, CHUNKS[1])]);
    expect(stored).toMatchObject({ prefixes: new Map(), order: [2, 0, 1], lines: 5 });
    // A chunk that the disk has lost is downloaded again.
    const lost = readJournal([...lines, prefixLine(0, { bytes: 1, sha256: WHOLE })]);
    expect(lost).toMatchObject({ chunks: new Map([[2, CHUNKS[2]]]), order: [2] });
  });

  it("has the bytes of the command line's", () => {
    const [first, ...rest] = [headerLine(header), chunkLine(2, CHUNKS[2]), chunkLine(0, CHUNKS[0])];
    expect([first, ...rest]).toEqual(lines);
    expect(headerLine({ bytes: 1, chunkBytes: 4096, sha256: WHOLE })).toBe(
      `{"format":1,"bytes":1,"chunk_bytes":4096,"identity":null,"sha256":"${WHOLE}"}`,
    );
    expect(verifiedLine(WHOLE)).toBe(`{"whole":"${WHOLE}"}`);
  });

  it("has the file's hash after verification", () => {
    expect(readJournal([...lines, verifiedLine(WHOLE)])).toMatchObject({ whole: WHOLE, lines: 4 });
  });

  it.each([
    ["a chunk behind the end", chunkLine(3, CHUNKS[1])],
    ["a negative chunk", chunkLine(-1, CHUNKS[1])],
    ["half a chunk", chunkLine(0.5, CHUNKS[1])],
    ["no digest", chunkLine(1, "abc")],
    ["an empty beginning", prefixLine(1, { bytes: 0, sha256: WHOLE })],
    ["a beginning as long as the chunk", prefixLine(1, { bytes: 1 << 20, sha256: WHOLE })],
    ["a beginning as long as the last chunk", prefixLine(2, { bytes: 1 << 19, sha256: WHOLE })],
    ["a beginning of half a byte", prefixLine(1, { bytes: 0.5, sha256: WHOLE })],
    ["a beginning behind the end", prefixLine(3, { bytes: 1, sha256: WHOLE })],
    ["a beginning without a digest", prefixLine(1, { bytes: 1, sha256: "abc" })],
    ["a beginning without its length", `{"prefix":[1,"${WHOLE}"]}`],
    ["another line", '{"other":1}'],
    ["no object", "[1]"],
    ["no JSON", "{"],
  ])("ends before an invalid line: %s", (_, line) => {
    const found = readJournal([...lines, line, chunkLine(1, CHUNKS[1])]);
    expect(found?.order).toEqual([2, 0]);
    expect(found?.lines).toBe(3);
  });

  it.each([
    undefined,
    "",
    "{}",
    lines[1],
    lines[0]?.replace('"format":1', '"format":2'),
    lines[0]?.replace("1048576", "0"),
    lines[0]?.replace("2621440", "-1"),
    lines[0]?.replace("2621440", "1e300"),
    lines[0]?.replace('"sha256":null', '"sha256":"abc"'),
    lines[0]?.replace('"sha256":null', '"sha256":""'),
    lines[0]?.replace('"identity":"\\"abc\\""', '"identity":7'),
  ])("is invalid with the first line %s", (first) => {
    expect(readJournal(first === undefined ? [] : [first, ...lines.slice(1)])).toBeUndefined();
  });

  it("drops chunks, and is rewritten with the rest", () => {
    const journal = readJournal([
      ...lines,
      chunkLine(1, CHUNKS[1]),
      chunkLine(0, CHUNKS[1]),
      verifiedLine(WHOLE),
    ]);
    const left = journal && linesWithoutChunks(journal, new Set([2]));
    expect(left).toEqual([lines[0], chunkLine(0, CHUNKS[1]), chunkLine(1, CHUNKS[1])]);
  });

  it("counts bytes, with a shorter last chunk", () => {
    const journal = readJournal(lines);
    expect(journal && downloadedBytes(journal)).toBe(1_048_576 + 524_288);
    expect(chunkCount(header)).toBe(3);
    expect(chunkRange(header, 2)).toEqual({ start: 2_097_152, end: 2_621_440 });
    expect(chunkRange(header, 9)).toEqual({ start: 2_621_440, end: 2_621_440 });
    expect(chunkCount({ bytes: 0, chunkBytes: 8 })).toBe(0);
  });

  it("resumes for the same file only", () => {
    expect(sameHeader(header, { ...header })).toBe(true);
    for (const other of [{ bytes: 1 }, { chunkBytes: 1 }, { identity: "x" }, { sha256: WHOLE }]) {
      expect(sameHeader(header, { ...header, ...other })).toBe(false);
    }
  });
});
