/**
 * Workers of files on another origin, such as a content delivery network, and of files that the browser does not take
 * for a worker.
 *
 * Browsers start workers of the page's own origin only (HTML, "worker constructor"), and in isolated pages of files that
 * have the page's headers. A module of the page has them, and may import the file.
 */

/** Addresses of modules that import a file, by the file's address. */
const modules = new Map<string, string>();

/** Addresses of the files of workers. */
const addresses = new WeakMap<Worker, string>();

/** The used part of Trusted Types. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): TrustedPolicy;
}

interface TrustedPolicy {
  createScriptURL(address: string): unknown;
}

let policy: TrustedPolicy | undefined;

/**
 * Starts a worker by `start`, a function that bundlers can read. With `imported`, and for a file of another origin, a
 * module imports its file.
 */
export function startWorker(start: () => Worker, imported: boolean): Worker {
  const Plain = globalThis.Worker;
  // The address is known to the bundler's code alone, so it is taken where that code uses it, at once. Classic workers
  // of bundlers load further scripts from beside their own address, which would be another: those are left as they are.
  const construct = (target: typeof Worker, [address, options = {}]: [string | URL, WorkerOptions?]) =>
    make(target, new URL(address, globalThis.location?.href), options, imported && options.type === "module");
  globalThis.Worker = new Proxy(Plain, { construct } as ProxyHandler<typeof Worker>);
  try {
    return start();
  } finally {
    globalThis.Worker = Plain;
  }
}

/** Starts the worker of a file by its address. */
export function startWorkerAt(address: URL, name: string, imported: boolean): Worker {
  return make(Worker, address, { type: "module", name }, imported);
}

/** The address of a worker's file. */
export function workerAddress(worker: Worker): string | undefined {
  return addresses.get(worker);
}

function make(target: typeof Worker, address: URL, options: WorkerOptions, imported: boolean): Worker {
  const isModule = options.type === "module";
  const from = imported || (isModule && !isOwn(address.href)) ? moduleOf(address.href) : address.href;
  const worker = new target(imported ? (trusted(from) as string) : from, options);
  addresses.set(worker, address.href);
  return worker;
}

/** The address of a module that imports a file. */
function moduleOf(address: string): string {
  const known = modules.get(address);
  if (known !== undefined) return known;
  const code = `import ${JSON.stringify(address)};`;
  const made = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  modules.set(address, made);
  return made;
}

/** The address as pages with Trusted Types want it: by the policy `setun`. */
function trusted(address: string): unknown {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  try {
    policy ??= trustedTypes?.createPolicy("setun", { createScriptURL: (given) => given });
  } catch (cause) {
    throw new Error("a policy with Trusted Types forbids it: add setun to trusted-types", { cause });
  }
  return policy?.createScriptURL(address) ?? address;
}

function isOwn(address: string): boolean {
  return new URL(address).origin === globalThis.origin;
}
