/** The page's end of the protocol: requests, their numbers and their responses. */

import { fromWire, SetunError } from "./errors.js";
import type { LoadOptions } from "./options.js";
import type { FromHost, ToHost } from "./protocol.js";

/** A channel to the host: a worker, or a host on the same thread. */
export interface HostLink {
  send(message: ToHost): void;
  /** Ends the host. */
  close(): void;
}

/** Opens a channel that reports messages, and a failure of the host. */
export type Connect = (receive: (message: FromHost) => void, fail: (error: Error) => void) => HostLink;

/** Receiver of the responses of one request. */
export interface Listener {
  receive(message: FromHost): void;
  fail(error: Error): void;
}

type Unnumbered<Message> = Message extends { id: number } ? Omit<Message, "id"> : never;

/** A message without its number. */
export type Request = Unnumbered<ToHost>;

/** All requests of one host. */
export class Connection {
  readonly #link: HostLink;
  readonly #listeners = new Map<number, Listener>();
  #lastId = 0;
  #closed: Error | undefined;

  constructor(connect: Connect) {
    this.#link = connect(
      (message) => this.#receive(message),
      (error) => this.close(error),
    );
  }

  /** Sends a request; returns its number for {@link Connection.send}. */
  start(request: Request, listener: Listener): number {
    return this.startAll(request, [listener]);
  }

  /** Sends one request with several listeners; returns the first of their numbers. */
  startAll(request: Request, listeners: readonly Listener[]): number {
    const id = this.#lastId + 1;
    this.#lastId += listeners.length;
    if (this.#closed !== undefined) {
      for (const listener of listeners) listener.fail(this.#closed);
      return id;
    }
    for (const [index, listener] of listeners.entries()) this.#listeners.set(id + index, listener);
    this.#link.send({ ...request, id } as ToHost);
    return id;
  }

  /** Sends a further message of a request, unless it has ended. */
  send(id: number, request: Request): void {
    if (this.#closed === undefined && this.#listeners.has(id)) this.#link.send({ ...request, id } as ToHost);
  }

  /** Drops the listener of a request. */
  remove(id: number): void {
    this.#listeners.delete(id);
  }

  /** Sends a request and waits for one response of a given type. */
  request<Type extends FromHost["type"]>(
    request: Request,
    type: Type,
  ): Promise<Extract<FromHost, { type: Type }>> {
    return new Promise((resolve, reject) => {
      const id = this.start(request, {
        receive: (message) => {
          this.remove(id);
          if (message.type === type) resolve(message as Extract<FromHost, { type: Type }>);
        },
        fail: reject,
      });
    });
  }

  /** Ends the host. All open and later requests fail with `reason`. */
  close(reason: Error = new SetunError("disposed", "the model has been disposed")): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#link.close();
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners) listener.fail(reason);
  }

  #receive(message: FromHost): void {
    const listener = this.#listeners.get(message.id);
    if (listener === undefined) return;
    if (message.type === "failed") {
      this.remove(message.id);
      listener.fail(fromWire(message.error));
    } else {
      listener.receive(message);
    }
  }
}

/**
 * Sends a request and waits for one response of a given type, with progress. An aborted signal rejects with its
 * reason.
 */
export function requestWithProgress<Type extends FromHost["type"]>(
  connection: Connection,
  request: Request,
  type: Type,
  { onProgress, signal }: Pick<LoadOptions, "onProgress" | "signal">,
): Promise<Extract<FromHost, { type: Type }>> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      connection.send(id, { type: "stop" });
      reject(signal?.reason);
    };
    const removeAbortListener = () => signal?.removeEventListener("abort", abort);
    const receive = (message: FromHost) => {
      if (message.type === "progress" && !signal?.aborted) onProgress?.(message.progress);
      if (message.type !== type) return;
      removeAbortListener();
      connection.remove(id);
      resolve(message as Extract<FromHost, { type: Type }>);
    };
    const fail = (error: Error) => {
      removeAbortListener();
      reject(error);
    };
    const id = connection.start(request, { receive, fail });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
