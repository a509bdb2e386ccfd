/** A conversation while a model is read: it reports progress, and can be aborted. */

import type { FromHost } from "./messages.js";
import type { LoadOptions } from "./options.js";
import type { Request, Session } from "./session.js";

/** Asks for one answer of a given type. An aborted signal rejects with its reason. */
export function ask<Type extends FromHost["type"]>(
  session: Session,
  request: Request,
  type: Type,
  { onProgress, signal }: Pick<LoadOptions, "onProgress" | "signal">,
): Promise<Extract<FromHost, { type: Type }>> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      session.follow(id, { type: "stop" });
      reject(signal?.reason);
    };
    const unwatch = () => signal?.removeEventListener("abort", abort);
    const receive = (message: FromHost) => {
      if (message.type === "progress" && !signal?.aborted) onProgress?.(message.progress);
      if (message.type !== type) return;
      unwatch();
      session.forget(id);
      resolve(message as Extract<FromHost, { type: Type }>);
    };
    const fail = (error: Error) => {
      unwatch();
      reject(error);
    };
    const id = session.start(request, { receive, fail });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
