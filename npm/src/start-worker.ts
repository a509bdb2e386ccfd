/**
 * Workers of files on another origin, such as a content delivery network.
 *
 * Browsers start workers of the page's own origin only (HTML, "worker constructor"). A module of the page may
 * import the file from any server that allows it by CORS.
 */

/** Addresses of modules that import a file, by the file's address. */
const modules = new Map<string, string>();

/**
 * Starts a worker by `start`, a function that bundlers can read. A file of another origin is imported instead.
 */
export function startWorker(start: () => Worker): Worker {
  const Plain = globalThis.Worker;
  if (isOwn(import.meta.url)) return start();
  // The address is known to the bundler's code alone, so it is taken where that code uses it, at once. Classic workers
  // of bundlers load further scripts from beside their own address, which would be another: those are left as they are.
  const construct = (target: typeof Worker, [address, options]: [string | URL, WorkerOptions?]) => {
    if (options?.type !== "module") return new target(address, options);
    return new target(ownAddress(new URL(address, globalThis.location.href)), options);
  };
  globalThis.Worker = new Proxy(Plain, { construct } as ProxyHandler<typeof Worker>);
  try {
    return start();
  } finally {
    globalThis.Worker = Plain;
  }
}

/** Starts the worker of a file by its address. */
export function startWorkerAt(address: URL, name: string): Worker {
  return new Worker(ownAddress(address), { type: "module", name });
}

/** An address from which a module worker may start. */
function ownAddress(address: URL): string {
  if (isOwn(address.href)) return address.href;
  const known = modules.get(address.href);
  if (known !== undefined) return known;
  const code = `import ${JSON.stringify(address.href)};`;
  const made = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  modules.set(address.href, made);
  return made;
}

function isOwn(address: string): boolean {
  return new URL(address).origin === globalThis.origin;
}
