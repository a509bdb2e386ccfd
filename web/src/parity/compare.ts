/** Tokens and log-probabilities of two runs, compared to the bit. */

/** A generated token. */
export interface Step {
  readonly token: number;
  readonly logprob: number;
}

/** What a comparison finds. */
export interface Comparison {
  readonly isEqual: boolean;
  /** The result in words. */
  readonly words: string;
}

/** Compares two runs: the first token that differs is named, else the largest difference of log-probabilities. */
export function compare(found: readonly Step[], expected: readonly Step[]): Comparison {
  const length = Math.max(found.length, expected.length);
  let [gap, areBitsEqual] = [0, true];
  for (let at = 0; at < length; at += 1) {
    const [one, other] = [found[at], expected[at]];
    if (one?.token !== other?.token) {
      const words = `token ${at + 1} is ${one?.token ?? "absent"}, expected ${other?.token ?? "none"}`;
      return { isEqual: false, words };
    }
    if (one === undefined || other === undefined) continue;
    areBitsEqual &&= Object.is(one.logprob, other.logprob);
    gap = Math.max(gap, Math.abs(one.logprob - other.logprob));
  }
  const words = `${length} tokens equal`;
  if (areBitsEqual) return { isEqual: true, words };
  return { isEqual: false, words: `${words}, log-probabilities differ by up to ${scientific(gap)}` };
}

/** A number with a minus sign, after which no line breaks. */
const scientific = (value: number): string => value.toExponential(1).replace("-", "−");

/** SHA-256 of all token ids and bits of log-probabilities, little-endian; its first 16 digits. */
export async function digest(steps: readonly Step[]): Promise<string> {
  const view = new DataView(new ArrayBuffer(12 * steps.length));
  for (const [at, { token, logprob }] of steps.entries()) {
    view.setUint32(12 * at, token, true);
    view.setFloat64(12 * at + 4, logprob, true);
  }
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", view));
  return Array.from(hash.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
