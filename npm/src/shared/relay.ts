/** The leader's side: requests of several tabs on one connection to the model. */

import type { Connection, Listener, Request } from "../connection.js";
import { toWire } from "../errors.js";
import type { FromHost, ToHost } from "../protocol.js";
import type { LeaderPort } from "./ports.js";

/** One tab's requests on the model's connection. */
export class RelayedTab {
  readonly #port: LeaderPort;
  readonly #connection: Connection;
  /** Numbers of requests on the connection, by the tab's own. */
  readonly #ids = new Map<number, number>();

  constructor(port: LeaderPort, connection: Connection) {
    this.#port = port;
    this.#connection = connection;
    port.receive = (message) => this.#receive(message);
  }

  /** Stops what runs for a tab that has gone. */
  end(): void {
    for (const id of this.#ids.values()) this.#connection.send(id, { type: "stop" });
    this.#port.close();
  }

  #receive({ id, ...request }: ToHost): void {
    if (request.type === "credit" || request.type === "stop") {
      const known = this.#ids.get(id);
      if (known !== undefined) this.#connection.send(known, request as Request);
      return;
    }
    const count = request.type === "generate" ? request.count : 1;
    const ids = Array.from({ length: count }, (_, index) => id + index);
    const listeners = ids.map((each) => this.#listener(each));
    try {
      const first = this.#connection.startAll(request as Request, listeners);
      for (const [index, each] of ids.entries()) this.#ids.set(each, first + index);
    } catch (thrown) {
      // It cannot be cloned.
      for (const listener of listeners) listener.fail(thrown as Error);
    }
  }

  #listener(id: number): Listener {
    return {
      receive: (message) => {
        if (isLast(message)) this.#forget(id);
        this.#port.send({ ...message, id });
      },
      fail: (error) => {
        this.#forget(id);
        this.#port.send({ type: "failed", id, error: toWire(error) });
      },
    };
  }

  #forget(id: number): void {
    const known = this.#ids.get(id);
    if (known !== undefined) this.#connection.remove(known);
    this.#ids.delete(id);
  }
}

/** Whether no other message of a request follows. */
function isLast(message: FromHost): boolean {
  if (message.type === "events") return message.events.at(-1)?.type === "done";
  return message.type !== "progress";
}
