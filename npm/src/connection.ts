/** The page's end of the protocol: numbers the conversations and hands each answer to its own. */

import { fromWire, SetunError } from "./errors.js";
import type { LoadOptions } from "./options.js";
import type { FromHost, ToHost } from "./protocol.js";

/** A way to the host: a worker, or a host on the same thread. */
export interface HostLink {
  send(message: ToHost): void;
  /** Ends the host, whatever it does. */
  close(): void;
}

/** Makes a link that reports messages, and the failure of the host as a whole. */
export type Connect = (receive: (message: FromHost) => void, fail: (error: Error) => void) => HostLink;

/** What one conversation does with its answers. */
export interface Listener {
  receive(message: FromHost): void;
  fail(error: Error): void;
}

type Unnumbered<Message> = Message extends { id: number } ? Omit<Message, "id"> : never;

/** A message that has yet to get its number. */
export type Request = Unnumbered<ToHost>;

/** All conversations with one host. */
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

  /** Starts a conversation; its number serves for {@link Connection.follow}. */
  start(request: Request, listener: Listener): number {
    return this.startAll(request, [listener]);
  }

  /** Starts a conversation with each of several listeners by one request; returns the first of their numbers. */
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

  /** Says more in a conversation that may have ended meanwhile. */
  send(id: number, request: Request): void {
    if (this.#closed === undefined && this.#listeners.has(id)) this.#link.send({ ...request, id } as ToHost);
  }

  /** No answer of this conversation matters any more. */
  remove(id: number): void {
    this.#listeners.delete(id);
  }

  /** Asks for one answer of a given type. */
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

  /** Ends the host; every open conversation, and every later one, fails with `reason`. */
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

/** Asks for one answer of a given type. An aborted signal rejects with its reason. */
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
    const unwatch = () => signal?.removeEventListener("abort", abort);
    const receive = (message: FromHost) => {
      if (message.type === "progress" && !signal?.aborted) onProgress?.(message.progress);
      if (message.type !== type) return;
      unwatch();
      connection.remove(id);
      resolve(message as Extract<FromHost, { type: Type }>);
    };
    const fail = (error: Error) => {
      unwatch();
      reject(error);
    };
    const id = connection.start(request, { receive, fail });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
