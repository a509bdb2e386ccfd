/** The page's end of the protocol: numbers the conversations and hands each answer to its own. */

import { fromWire, SetunError } from "./errors.js";
import type { FromHost, ToHost } from "./messages.js";

/** A way to the host: a worker, or a host on the same thread. */
export interface Link {
  send(message: ToHost): void;
  /** Ends the host, whatever it does. */
  close(): void;
}

/** Makes a link that reports messages, and the failure of the host as a whole. */
export type Connect = (receive: (message: FromHost) => void, fail: (error: Error) => void) => Link;

/** What one conversation does with its answers. */
export interface Listener {
  receive(message: FromHost): void;
  fail(error: Error): void;
}

type Unnumbered<Message> = Message extends { id: number } ? Omit<Message, "id"> : never;

/** A message that has yet to get its number. */
export type Request = Unnumbered<ToHost>;

/** All conversations with one host. */
export class Session {
  readonly #link: Link;
  readonly #listeners = new Map<number, Listener>();
  #lastId = 0;
  #closed: Error | undefined;

  constructor(connect: Connect) {
    this.#link = connect(
      (message) => this.#receive(message),
      (error) => this.close(error),
    );
  }

  /** Starts a conversation; its number serves for {@link Session.follow}. */
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
  follow(id: number, request: Request): void {
    if (this.#closed === undefined && this.#listeners.has(id)) this.#link.send({ ...request, id } as ToHost);
  }

  /** No answer of this conversation matters any more. */
  forget(id: number): void {
    this.#listeners.delete(id);
  }

  /** Asks for one answer of a given type. */
  ask<Type extends FromHost["type"]>(
    request: Request,
    type: Type,
  ): Promise<Extract<FromHost, { type: Type }>> {
    return new Promise((resolve, reject) => {
      const id = this.start(request, {
        receive: (message) => {
          this.forget(id);
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
      this.forget(message.id);
      listener.fail(fromWire(message.error));
    } else {
      listener.receive(message);
    }
  }
}
