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
  const channels = Array.from({ length: count }, () => new MessageChannel());
  // A memory that the page receives lives until the page collects its garbage, long after all workers.
  for (const { port1 } of channels) port1.postMessage({ module, memory });
  await askPage(channels.map(({ port2 }) => port2));
  glue.setPoolWorkers(count);
}

/** Has the page start a worker of this script for each source, and send it there. */
function askPage(sources) {
  return new Promise((resolve, reject) => {
    const { port1: port, port2: reply } = new MessageChannel();
    port.onmessage = ({ data: { failure } }) => {
      port.close();
      if (failure === undefined) resolve();
      else reject(new Error(failure));
    };
    self.postMessage({ type: "setun-start-threads", sources, reply }, [...sources, reply]);
  });
}

/**
 * Makes this worker a thread of the pool that sent `message`. Does not return while the pool lives.
 *
 * @param glue the module `setun.js` of the same variant
 */
export async function joinPool(glue, message) {
  try {
    const { module, memory } = await received(message.source);
    await glue.default({ module_or_path: module, memory });
  } catch (error) {
    self.postMessage({ type: "setun-thread-failed", message: String(error) });
    return;
  }
  self.postMessage({ type: "setun-thread-ready" });
  glue.servePool();
}

/** The one message of a port. */
function received(port) {
  return new Promise((resolve, reject) => {
    port.onmessage = ({ data }) => resolve(data);
    port.onmessageerror = () => reject(new Error("the memory cannot be shared with a thread"));
  }).finally(() => port.close());
}
