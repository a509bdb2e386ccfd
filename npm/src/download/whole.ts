/** A file from a server that gives no parts: all of it, from its beginning. */

import { sha256 } from "../store/digest.js";
import { chunkCount, chunkRange } from "../store/journal.js";
import type { Answer } from "./answer.js";
import { Changed, Later, sizeError } from "./faults.js";
import type { FileDownload } from "./file-download.js";
import type { Http } from "./http.js";
import type { Heard, Remote } from "./remote.js";
import { Attempts } from "./retry.js";

/** Brings the file once through. Chunks that were there are compared, not written. */
export async function receiveWhole(
  file: FileDownload,
  { settings }: Http,
  remote: Remote,
  signal: AbortSignal,
  first: Answer,
  heard: Heard,
): Promise<void> {
  const attempts = new Attempts(settings, signal);
  let answer: Answer | undefined = first;
  for (;;) {
    const before = file.there;
    try {
      const whole = await remote.whole(signal, answer);
      return await new Pieces(file, remote, whole, heard).receive();
    } catch (thrown) {
      if (file.there > before) attempts.progressed();
      await attempts.wait(thrown);
    }
    answer = undefined;
  }
}

class Pieces {
  readonly #file: FileDownload;
  readonly #remote: Remote;
  readonly #answer: Answer;
  readonly #heard: Heard;
  #pending = new Uint8Array(0) as Uint8Array;

  constructor(file: FileDownload, remote: Remote, answer: Answer, heard: Heard) {
    this.#file = file;
    this.#remote = remote;
    this.#answer = answer;
    this.#heard = heard;
  }

  async receive(): Promise<void> {
    const { subject } = this.#file;
    const count = chunkCount(subject);
    try {
      for (let chunk = 0; chunk < count; chunk += 1) await this.#receiveChunk(chunk);
      let more = this.#pending.length;
      for (let piece = await this.#answer.next(); piece !== undefined; piece = await this.#answer.next()) {
        more += piece.length;
      }
      if (more > 0) throw this.#remote.otherSize(subject.bytes + more);
    } finally {
      await this.#answer.cancel();
    }
  }

  async #receiveChunk(chunk: number): Promise<void> {
    const { subject, wanted } = this.#file;
    const { start, end } = chunkRange(subject, chunk);
    const there = this.#file.digest(chunk);
    const bytes = new Uint8Array(end - start);
    let filled = 0;
    try {
      while (filled < bytes.length) {
        const piece = await this.#next(bytes.length - filled);
        if (piece === undefined)
          throw new Later(sizeError(wanted.address, subject.bytes, `${start + filled}`));
        bytes.set(piece, filled);
        filled += piece.length;
        if (there === undefined) this.#heard(piece.length);
      }
    } catch (thrown) {
      if (there === undefined) this.#heard(-filled);
      throw thrown;
    }
    if (there === undefined) return this.#file.keep(chunk, bytes, true);
    if ((await sha256(bytes)) !== there) throw new Changed(`other bytes in chunk ${chunk}`);
  }

  async #next(most: number): Promise<Uint8Array | undefined> {
    if (this.#pending.length === 0) {
      const piece = await this.#answer.next();
      if (piece === undefined) return undefined;
      this.#pending = piece;
    }
    const piece = this.#pending.subarray(0, most);
    this.#pending = this.#pending.subarray(piece.length);
    return piece;
  }
}
