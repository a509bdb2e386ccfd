// The JavaScript half of the thread pool: written over wasm-bindgen-rayon's own by the build.
//
// A thread is one more worker of the very script that runs here. That address went through the
// bundler and the content security policy once already, so no second entry point, no blob and no
// guess about folders is needed. The script answers a `setun-thread` message by calling `joinPool`.

const variant = "VARIANT";

/** Keeps the workers reachable: some engines collect a worker that only shares memory. */
let pool = [];

/** Called by `initThreadPool`: resolves once every thread waits for work. */
export async function startWorkers(module, memory, builder) {
  const message = { type: "setun-thread", variant, module, memory, receiver: builder.receiver() };
  try {
    pool = await Promise.all(Array.from({ length: builder.numThreads() }, () => startThread(message)));
    builder.build();
  } catch (error) {
    for (const worker of pool) worker.terminate();
    throw error;
  }
}

function startThread(message) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(self.location.href, { type: "module", name: "setun-thread" });
    worker.onerror = (event) => reject(new Error(event.message || "a thread could not be started"));
    worker.onmessage = ({ data }) => {
      if (data?.type === "setun-thread-ready") resolve(worker);
      if (data?.type === "setun-thread-failed") reject(new Error(data.message));
    };
    worker.postMessage(message);
  });
}

/**
 * Makes this worker a thread of the pool that sent `message`. Does not return while the pool lives.
 *
 * @param glue the module `setun.js` of the same variant
 */
export async function joinPool(glue, message) {
  try {
    await glue.default({ module_or_path: message.module, memory: message.memory });
  } catch (error) {
    self.postMessage({ type: "setun-thread-failed", message: String(error) });
    return;
  }
  self.postMessage({ type: "setun-thread-ready" });
  glue.wbg_rayon_start_worker(message.receiver);
}
