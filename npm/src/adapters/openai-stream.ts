/** A stream of chunks in the shape of the official client. */

import { following } from "./core.js";
import { asApiError } from "./openai-errors.js";

/** Options of a request. Those of a connection, such as `headers` and `maxRetries`, have no effect. */
export interface RequestOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal | null | undefined;
  /** Time limit in milliseconds, after which the request fails. */
  readonly timeout?: number | undefined;
  /** Without effect. */
  readonly maxRetries?: number | undefined;
  /** Without effect. */
  readonly headers?: unknown;
}

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
    const iterator = this[Symbol.asyncIterator]();
    const encoder = new TextEncoder();
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
      },
      async cancel() {
        await iterator.return?.();
      },
    });
  }
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
