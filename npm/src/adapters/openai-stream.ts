/** A stream of chunks in the shape of the official client. */

import { toStream } from "../readable-stream.js";
import { following } from "./core.js";
import type { RequestOptions } from "./openai-client-types.js";
import { asApiError } from "./openai-errors.js";

/** Chunks as they come. It can be read once; leaving the loop ends the generation. */
export class Stream<Item> implements AsyncIterable<Item> {
  /** Aborts the request; the loop then ends without an error. */
  readonly controller: AbortController;
  readonly #iterate: () => AsyncIterator<Item>;
  #isRead = false;

  /** @internal */
  constructor(iterate: () => AsyncIterator<Item>, controller: AbortController) {
    this.#iterate = iterate;
    this.controller = controller;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    if (this.#isRead) throw new TypeError("a stream can be read once: use tee() to read it twice");
    this.#isRead = true;
    return this.#iterate();
  }

  /** Two streams with the same chunks. */
  tee(): [Stream<Item>, Stream<Item>] {
    const queues: [Promise<IteratorResult<Item>>[], Promise<IteratorResult<Item>>[]] = [[], []];
    const source = this[Symbol.asyncIterator]();
    const branch = (own: 0 | 1): Stream<Item> => {
      const next = () => {
        if (queues[own].length === 0) {
          const step = source.next();
          for (const queue of queues) queue.push(step);
        }
        return queues[own].shift() ?? source.next();
      };
      return new Stream(() => ({ next }), this.controller);
    };
    return [branch(0), branch(1)];
  }

  /** Lines of JSON, one a chunk, as the official client's `fromReadableStream` reads them. */
  toReadableStream(): ReadableStream<Uint8Array> {
    return toStream(linesOf(this), () => this.controller.abort());
  }
}

async function* linesOf(chunks: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const chunk of chunks) yield encoder.encode(`${JSON.stringify(chunk)}\n`);
}

/** A controller that also follows the signal and the time limit of a request. */
export function controllerOf({ signal, timeout }: RequestOptions = {}): AbortController {
  return following(signal, timeout === undefined ? undefined : AbortSignal.timeout(timeout));
}

/** A stream over chunks that the engine makes. Its errors become the client's; an abort by the user ends it. */
export function streamOf<Item>(chunks: AsyncGenerator<Item>, controller: AbortController): Stream<Item> {
  const iterate = async function* () {
    try {
      yield* chunks;
    } catch (thrown) {
      const error = asApiError(thrown, controller.signal);
      if (!(error instanceof Error && error.name === "APIUserAbortError")) throw error;
    } finally {
      controller.abort();
    }
  };
  return new Stream(iterate, controller);
}
