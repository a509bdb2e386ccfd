/** Channels to a host: in a worker, or on the calling thread. */

import type { Connect } from "./connection.js";
import { SetunError } from "./errors.js";
import { Host, type HostPlatform } from "./host.js";
import type { FromHost, ToHost } from "./protocol.js";
import { startThreads, type ThreadsWanted } from "./threads.js";

/** A host in a module worker, with the thread workers that it requests. */
export function connectWorker(startWorker: () => Worker): Connect {
  return (receive, fail) => {
    const worker = startWorker();
    const threads: Worker[] = [];
    let open = true;
    worker.addEventListener("message", ({ data }: MessageEvent<FromHost | ThreadsWanted>) => {
      if (!open) return;
      if (data.type === "setun-start-threads") void startThreads(data, startWorker, threads);
      else receive(data);
    });
    worker.addEventListener("error", (event) => fail(workerError(event)));
    const close = () => {
      open = false;
      for (const each of [worker, ...threads]) each.terminate();
    };
    return { send: (message) => worker.postMessage(message), close };
  };
}

/** A host on the calling thread: in Node, and with `worker: false`. */
export function connectLocal(platform: HostPlatform): Connect {
  return (receive) => {
    let open = true;
    const host = new Host(platform, (message) => {
      if (open) receive(message);
    });
    // As with a worker, no response comes before `send` has returned.
    const send = (message: ToHost) => queueMicrotask(() => void host.receive(message));
    const close = () => {
      open = false;
      send({ type: "dispose", id: 0 });
    };
    return { send, close };
  };
}

/** A worker that cannot start reports an event without a message. */
function workerError(event: ErrorEvent): Error {
  if (event.message) return new Error(`setun's worker failed: ${event.message}`, { cause: event.error });
  return new SetunError(
    "network",
    "setun's worker could not be loaded; Vite before 8 needs optimizeDeps: { exclude: ['setun'] }",
  );
}
