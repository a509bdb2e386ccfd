/**
 * Thread workers of a threaded build, or workers that share weights, which the page starts for its worker.
 *
 * Firefox 153 sometimes stops workers that start workers.
 */

import { watchWorker } from "./worker-end.js";

/** Request of the worker for `count` thread workers, each of which gets `thread`. */
export interface ThreadsWanted {
  readonly type: "setun-start-threads";
  readonly count: number;
  /** Data of the generated code. */
  readonly thread: unknown;
  /** A port for each worker, which it gets with `thread`. */
  readonly ports?: readonly MessagePort[];
  /** Port for a {@link ThreadsStarted}, and for another once a worker with a port has failed or ended. */
  readonly reply: MessagePort;
}

/** The answer: all threads are ready, or the reason of a failure. */
export interface ThreadsStarted {
  readonly failure?: string;
}

type ThreadAnswer =
  | { readonly type: "setun-thread-ready" }
  | { readonly type: "setun-thread-failed"; readonly message: string };

/** Starts the workers of a pool and answers. After a failure none is left. */
export async function startThreads(
  { count, thread, ports, reply }: ThreadsWanted,
  startWorker: () => Worker,
  threads: Worker[],
): Promise<void> {
  const started = Array.from({ length: count }, async (_, index) => {
    const worker = startWorker();
    threads.push(worker);
    const port = ports?.[index];
    await startThread(worker, thread, port);
    if (port !== undefined) reportEnd(worker, (failure) => reply.postMessage({ failure }));
  });
  let answer: ThreadsStarted = {};
  try {
    await Promise.all(started);
  } catch (thrown) {
    for (const worker of threads.splice(0)) worker.terminate();
    answer = { failure: (thrown as Error).message };
  }
  reply.postMessage(answer);
}

/** Says why a worker answers no more: it has failed, or it ended. */
function reportEnd(worker: Worker, report: (failure: string) => void): void {
  worker.addEventListener("error", ({ message }) => report(message || "a worker failed"));
  watchWorker(worker, () => report("a worker ended"));
}

function startThread(worker: Worker, thread: unknown, port?: MessagePort): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("error", ({ message }) =>
      reject(new Error(message || "no thread could be started")),
    );
    worker.addEventListener("message", ({ data }: MessageEvent<ThreadAnswer>) => {
      if (data.type === "setun-thread-ready") resolve();
      else reject(new Error(data.message));
    });
    if (port === undefined) worker.postMessage(thread);
    else worker.postMessage({ ...(thread as object), port }, [port]);
  });
}
