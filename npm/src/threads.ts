/**
 * The threads of a threaded build, which the page makes for its worker.
 *
 * The worker could make them itself, but a worker that makes a worker sometimes stops for ever in Firefox (153).
 */

/** From the worker: `count` more workers of its script are wanted, each to be sent `thread`. */
export interface ThreadsWanted {
  readonly type: "setun-start-threads";
  readonly count: number;
  /** Only the generated code reads it. */
  readonly thread: unknown;
  /** Is told a {@link ThreadsStarted}. */
  readonly reply: MessagePort;
}

/** The answer: all wait for work, or why not. */
export interface ThreadsStarted {
  readonly failure?: string;
}

type ThreadAnswer =
  | { readonly type: "setun-thread-ready" }
  | { readonly type: "setun-thread-failed"; readonly message: string };

/** Starts the workers of a pool, and answers; if one fails, none is left. */
export async function startThreads(
  { count, thread, reply }: ThreadsWanted,
  startWorker: () => Worker,
  threads: Worker[],
): Promise<void> {
  const started = Array.from({ length: count }, () => {
    const worker = startWorker();
    threads.push(worker);
    return startThread(worker, thread);
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

function startThread(worker: Worker, thread: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("error", ({ message }) =>
      reject(new Error(message || "no thread could be started")),
    );
    worker.addEventListener("message", ({ data }: MessageEvent<ThreadAnswer>) => {
      if (data.type === "setun-thread-ready") resolve();
      else reject(new Error(data.message));
    });
    worker.postMessage(thread);
  });
}
