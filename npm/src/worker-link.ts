/** A channel to a host in a worker, with the thread workers that it requests. */

import type { Connect, HostLink } from "./connection.js";
import { answerCrossOrigin, type CrossOriginWanted } from "./cross-origin-page.js";
import { SetunError } from "./errors.js";
import { type PolicyWatch, watchPolicy } from "./policy-watch.js";
import type { FromHost, ToHost } from "./protocol.js";
import { startThreads, type ThreadsWanted } from "./threads.js";
import { type LockHeld, watchWorker } from "./worker-end.js";
import { REMEDY, refused, whyNotLoaded } from "./worker-refused.js";

const WORKER_ENDED = "the worker that ran the model has ended; load the model again";

/** Milliseconds for a stopped load to store what has arrived. */
const STORING_MS = 10_000;

/** Starts the worker of a build: by its address, or by a module that imports it. */
export type StartWorker = (imported: boolean) => Worker;

/** A host in a module worker. */
export function connectWorker(startWorker: StartWorker): Connect {
  return (receive, fail) => new WorkerLink(startWorker, receive, fail);
}

class WorkerLink implements HostLink {
  readonly #startWorker: StartWorker;
  readonly #receive: (message: FromHost) => void;
  readonly #fail: (error: Error) => void;
  readonly #threads: Worker[] = [];
  #worker: Worker;
  #unwatch: () => void = () => undefined;
  #policy: PolicyWatch = watchPolicy();
  /** Whether a module imports the workers' file. Such a module has the headers of the page. */
  #isImported = false;
  /** Messages to a worker that has not answered yet. */
  #unanswered: ToHost[] = [];
  #hasStarted = false;
  #isOpen = true;
  /** A load without an answer, and whether it was stopped. */
  #load: number | undefined;
  #isStopped = false;

  constructor(startWorker: StartWorker, receive: (message: FromHost) => void, fail: (error: Error) => void) {
    this.#startWorker = startWorker;
    this.#receive = receive;
    this.#fail = fail;
    this.#worker = this.#start();
  }

  send(message: ToHost): void {
    if (message.type === "probe" || message.type === "open") this.#load = message.id;
    this.#isStopped ||= message.type === "stop" && message.id === this.#load;
    if (!this.#hasStarted) this.#unanswered.push(message);
    this.#worker.postMessage(message);
  }

  close(): void {
    this.#isOpen = false;
    this.#unwatch();
    this.#policy.end();
    if (this.#load === undefined || !this.#isStopped) this.#end();
    else setTimeout(() => this.#end(), STORING_MS);
  }

  #start(): Worker {
    let worker: Worker;
    try {
      worker = this.#startWorker(this.#isImported);
    } catch (cause) {
      // A page without an origin, and one that trusts no addresses, refuse a worker at once.
      if (!this.#isImported) return this.#startImported();
      this.#policy.end();
      const { name, message } = cause as Error;
      // Classic workers of bundlers are of the page's own origin.
      throw refused(name === "SecurityError" ? `${message}; ${REMEDY}` : message, cause);
    }
    worker.addEventListener("message", ({ data }) => this.#take(data));
    worker.addEventListener("error", (event) => this.#failed(worker, event));
    this.#unwatch = watchWorker(worker, () => this.#fail(new SetunError("device-lost", WORKER_ENDED)));
    return worker;
  }

  #startImported(): Worker {
    this.#isImported = true;
    return this.#start();
  }

  #take(data: FromHost | ThreadsWanted | LockHeld | CrossOriginWanted): void {
    this.#hasStarted = true;
    this.#unanswered = [];
    this.#policy.end();
    if ("id" in data && data.id === this.#load && data.type !== "progress") {
      this.#load = undefined;
      if (!this.#isOpen) this.#end();
    }
    if (!this.#isOpen || data.type === "setun-held") return;
    if (data.type === "setun-start-threads")
      void startThreads(data, () => this.#startWorker(this.#isImported), this.#threads);
    else if (data.type === "setun-cross-origin") void answerCrossOrigin(data);
    else this.#receive(data);
  }

  /** A worker whose file the browser refuses reports an event without a message. */
  #failed(worker: Worker, { message, error: cause }: ErrorEvent): void {
    if (this.#hasStarted) {
      const text = `the worker that ran the model has failed: ${message || "no reason"}; load the model again`;
      this.#fail(new SetunError("device-lost", text, { cause }));
    } else if (message) {
      const text = `setun's worker could not start: ${message}; if a bundler has split its file, ${REMEDY}`;
      this.#fail(new SetunError("network", text, { cause }));
    } else {
      this.#refuse(worker);
    }
  }

  /** A worker that the browser refuses is started once more, unless a policy forbids it. */
  #refuse(worker: Worker): void {
    const way = this.#policy.remedy();
    if (way !== undefined) {
      this.#fail(refused(`a Content-Security-Policy blocks it: ${way}, or pass worker: false`));
    } else if (this.#isImported) {
      void whyNotLoaded(worker).then((why) => this.#fail(refused(why)));
    } else {
      this.#restart();
    }
  }

  /** Starts by a module. At some servers pages have headers that files lack. */
  #restart(): void {
    this.#unwatch();
    this.#end();
    try {
      this.#worker = this.#startImported();
      for (const message of this.#unanswered) this.#worker.postMessage(message);
    } catch (thrown) {
      this.#fail(thrown as Error);
    }
  }

  #end(): void {
    for (const each of [this.#worker, ...this.#threads]) each.terminate();
  }
}
