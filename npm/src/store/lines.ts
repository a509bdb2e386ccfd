/** The lines of a journal as its bytes hold them. */

/** Longer lines are none of a journal. */
const LINE_BYTES = 4096;

const NEWLINE = 0x0a;

/** The lines that were written whole, and how many bytes they have: what follows was cut off and counts for nothing. */
export function wholeLines(bytes: Uint8Array): { lines: string[]; bytes: number } {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end < 0 || end - start >= LINE_BYTES) break;
    const line = decoder.decode(bytes.subarray(start, end));
    if (!isJson(line)) break;
    lines.push(line);
    start = end + 1;
  }
  return { lines, bytes: start };
}

/** The bytes of lines. */
export function lineBytes(lines: readonly string[]): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
