/** Channels to a host: in a worker, or on the calling thread. */

import type { Connect } from "./connection.js";
import { SetunError } from "./errors.js";
import { Host } from "./host.js";
import type { HostPlatform } from "./host-platform.js";
import { type PolicyWatch, watchPolicy } from "./policy-watch.js";
import type { FromHost, ToHost } from "./protocol.js";
import { startThreads, type ThreadsWanted } from "./threads.js";
import { type LockHeld, watchWorker } from "./worker-end.js";

const NOT_LOADED = "setun's worker could not be loaded: ";

const REMEDY =
  "pass assetsUrl, the address of a copy of the package's folders dist and model (Vite before 8: optimizeDeps: " +
  "{ exclude: ['setun'] })";

const LEFT_OUT = `${NOT_LOADED}its server cannot be reached, a bundler has left its file out, or a policy blocks it; ${REMEDY}`;

const WORKER_ENDED = "the worker that ran the model has ended; load the model again";

/** Milliseconds for a stopped load to store what has arrived. */
const STORING_MS = 10_000;

/** A host in a module worker, with the thread workers that it requests. */
export function connectWorker(startWorker: () => Worker): Connect {
  return (receive, fail) => {
    const policy = watchPolicy();
    const worker = startFirst(startWorker, policy);
    const threads: Worker[] = [];
    let open = true;
    let hasStarted = false;
    /** A load without an answer, and whether it was stopped. */
    let load: number | undefined;
    let isStopped = false;
    worker.addEventListener("message", ({ data }: MessageEvent<FromHost | ThreadsWanted | LockHeld>) => {
      hasStarted = true;
      policy.end();
      if ("id" in data && data.id === load && data.type !== "progress") {
        load = undefined;
        if (!open) end();
      }
      if (!open || data.type === "setun-held") return;
      if (data.type === "setun-start-threads") void startThreads(data, startWorker, threads);
      else receive(data);
    });
    worker.addEventListener("error", (event) => fail(workerError(event, hasStarted, policy)));
    const unwatch = watchWorker(worker, () => fail(new SetunError("device-lost", WORKER_ENDED)));
    const end = () => {
      for (const each of [worker, ...threads]) each.terminate();
    };
    const close = () => {
      open = false;
      unwatch();
      policy.end();
      if (load === undefined || !isStopped) end();
      else setTimeout(end, STORING_MS);
    };
    const send = (message: ToHost) => {
      if (message.type === "probe" || message.type === "open") load = message.id;
      isStopped ||= message.type === "stop" && message.id === load;
      worker.postMessage(message);
    };
    return { send, close };
  };
}

/** The worker of the host. Browsers refuse one of another origin at once. */
function startFirst(startWorker: () => Worker, policy: PolicyWatch): Worker {
  try {
    return startWorker();
  } catch (cause) {
    policy.end();
    throw new SetunError("network", LEFT_OUT, { cause });
  }
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

/** A worker whose file is missing reports an event without a message. */
function workerError({ message, error: cause }: ErrorEvent, hasStarted: boolean, policy: PolicyWatch): Error {
  if (message && hasStarted) {
    const text = `the worker that ran the model has failed: ${message}; load the model again`;
    return new SetunError("device-lost", text, { cause });
  }
  if (message) {
    const text = `setun's worker could not start: ${message}; if a bundler has split its file, ${REMEDY}`;
    return new SetunError("network", text, { cause });
  }
  const way = policy.remedy();
  if (way !== undefined) {
    const text = `${NOT_LOADED}a Content-Security-Policy blocks it: ${way}, or pass worker: false`;
    return new SetunError("network", text);
  }
  const isOffline = globalThis.navigator?.onLine === false;
  return new SetunError("network", isOffline ? `${NOT_LOADED}this browser is offline` : LEFT_OUT);
}
