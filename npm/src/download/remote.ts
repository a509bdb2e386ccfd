/** A file on its server: asked for in parts, each of which has to be of the same file. */

import type { Answer } from "./answer.js";
import { Changed, Later, networkError, sizeError } from "./faults.js";
import { expectStatus, type Http } from "./http.js";
import type { Wanted } from "./plan.js";
import { Attempts } from "./retry.js";

/** Bytes that make an attempt one that brought something. */
const PROGRESS = 64 << 10;

/** The server gives no parts of the file: the answer has all of it, from its beginning. */
export class NoRanges {
  readonly answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }
}

/** Hears of bytes as they come; of fewer than none where they have to come again. */
export type Heard = (bytes: number) => void;

/** See the module. */
export class Remote {
  readonly #http: Http;
  readonly #wanted: Wanted;
  #identity: string | undefined;
  /** Whether it has given a part; until then one request at a time is enough. */
  givesParts = false;

  constructor(http: Http, wanted: Wanted) {
    this.#http = http;
    this.#wanted = wanted;
    this.#identity = wanted.identity;
  }

  /** Bytes `start..end`. A connection that breaks is taken up where it broke. @throws {NoRanges} or {@link Changed} */
  async part(
    start: number,
    end: number,
    signal: AbortSignal,
    heard: Heard,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(end - start);
    const attempts = new Attempts(this.#http.settings, signal);
    const enough = Math.min(PROGRESS, Math.ceil(bytes.length / 8));
    let filled = 0;
    while (filled < bytes.length) {
      const before = filled;
      try {
        const answer = await this.#ask(start + filled, end, signal);
        for (;;) {
          const piece = await this.#next(answer, bytes.length - filled);
          if (piece === undefined) break;
          bytes.set(piece, filled);
          filled += piece.length;
          heard(piece.length);
        }
        if (filled < bytes.length) throw new Later(this.#wrongSize(end - start - before, filled - before));
      } catch (thrown) {
        if (!(thrown instanceof Later)) heard(-filled);
        if (filled - before >= enough) attempts.progressed();
        await attempts.wait(thrown);
      }
    }
    return bytes;
  }

  /** The whole file from its beginning, for which `answer` may be there already. */
  async whole(signal: AbortSignal, answer?: Answer): Promise<Answer> {
    const found = answer ?? (await this.#http.send(this.#wanted.address, {}, signal));
    await expectStatus(found, [200]);
    this.#checkIdentity(found);
    const { length, address } = found;
    if (length !== undefined && length !== this.#wanted.bytes) {
      await found.cancel();
      throw this.otherSize(length);
    }
    if (found.isMissing) throw networkError(address, "a web page came in its place");
    return found;
  }

  /** The file has another size than was told: where a list told it, the server is wrong. */
  otherSize(found: number): Error {
    const { address, bytes, isPinned } = this.#wanted;
    if (isPinned) return sizeError(address, bytes, `${found}`);
    return new Changed(`${found} bytes, before ${bytes}`, { address, bytes: found });
  }

  async #ask(start: number, end: number, signal: AbortSignal): Promise<Answer> {
    const { address, bytes, condition } = this.#wanted;
    const isLast = end === bytes;
    // Of the last part the end is left open: it tells the size where other sites hide it.
    const ask = { start, end: isLast ? undefined : end, ifRange: condition };
    const answer = await this.#http.send(address, ask, signal);
    try {
      await this.#accept(answer, start, end);
    } catch (thrown) {
      if (!(thrown instanceof NoRanges)) await answer.cancel();
      throw thrown;
    }
    this.givesParts = true;
    return answer;
  }

  /** Finds out whether an answer is a part of the same file. */
  async #accept(answer: Answer, start: number, end: number): Promise<void> {
    const { status, range, length } = answer;
    const { bytes } = this.#wanted;
    if (status === 416) throw this.#ended(range?.total);
    if (status === 200) {
      this.#checkIdentity(answer);
      if (length !== undefined && length !== bytes) throw this.otherSize(length);
      throw new NoRanges(answer);
    }
    await expectStatus(answer, [206]);
    this.#checkIdentity(answer);
    if (range?.total !== undefined && range.total !== bytes) throw this.otherSize(range.total);
    if (range !== undefined && (range.first !== start || range.last < range.first)) {
      throw new Later(networkError(answer.address, `bytes from ${range.first} came, wanted from ${start}`));
    }
    if (length === undefined || length <= end - start) return;
    if (end === bytes && range === undefined) throw this.otherSize(start + length);
    throw new Later(this.#wrongSize(end - start, length));
  }

  /** The next bytes of a part; that more come than were asked for is an error. */
  async #next(answer: Answer, most: number): Promise<Uint8Array | undefined> {
    const piece = await answer.next();
    if (piece === undefined || piece.length <= most) return piece;
    await answer.cancel();
    throw new Later(sizeError(answer.address, most, "more"));
  }

  #checkIdentity(answer: Answer): void {
    const { identity } = answer;
    if (this.#wanted.isPinned === true || identity === undefined) return;
    const known = this.#identity;
    this.#identity ??= identity;
    // Where an etag was hidden the date was taken, and the two are not to be compared.
    const isSameKind = known?.startsWith('"') === identity.startsWith('"');
    if (known !== undefined && isSameKind && known !== identity) {
      throw new Changed(`known as ${identity}, before as ${known}`);
    }
  }

  #ended(total: number | undefined): Error {
    if (total !== undefined && total !== this.#wanted.bytes) return this.otherSize(total);
    return new Changed("it ends before bytes that it had");
  }

  #wrongSize(expected: number, found: number): ReturnType<typeof sizeError> {
    return sizeError(this.#wanted.address, expected, `${found}`);
  }
}
