// The JavaScript half of the thread pool.
//
// The page makes the threads, as workers of the very script that runs here: that address went
// through the bundler and the content security policy once already, so no second entry point, no
// blob and no guess about folders is needed. This worker does not make them itself, because a
// worker that makes a worker sometimes stops for ever in Firefox (153). The script answers a
// `setun-thread` message by calling `joinPool`.

/**
 * Fills the pool with `count` threads: resolves once every one is ready.
 *
 * @param glue the module `setun.js` of the same variant
 */
export async function startPool(glue, count) {
  const [module, memory] = glue.threadStart();
  await askPage(count, { type: "setun-thread", module, memory });
  glue.setPoolWorkers(count);
}

/** Has the page start `count` workers of this script and send each of them `thread`. */
function askPage(count, thread) {
  return new Promise((resolve, reject) => {
    const { port1: port, port2: reply } = new MessageChannel();
    port.onmessage = ({ data: { failure } }) => {
      port.close();
      if (failure === undefined) resolve();
      else reject(new Error(failure));
    };
    self.postMessage({ type: "setun-start-threads", count, thread, reply }, [reply]);
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
  glue.servePool();
}
