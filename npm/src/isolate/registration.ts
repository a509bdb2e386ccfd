/** The registration of the service worker that isolates a page. */

import { thrownText } from "../shown.js";
import type { IsolationPolicy } from "./headers.js";
import { type Unsupported, unsupported } from "./obstacles.js";

/** The service worker of `isolate`: the address of its file, or the registration of one that a page has. */
export type WorkerSource = URL | ServiceWorkerRegistration;

/** What distinguishes a worker from others of the origin. */
export function workerKey(source: WorkerSource): string {
  return source instanceof URL ? source.pathname : source.scope;
}

/** The addresses of its pages: those in the folder of its file. */
export function scopeOf(source: WorkerSource): string {
  return source instanceof URL ? new URL("./", source).href : source.scope;
}

/** Registers the worker, and waits until it answers for pages that are loaded. Returns what is in the way. */
export async function register(
  container: ServiceWorkerContainer,
  source: WorkerSource,
  policy: IsolationPolicy,
): Promise<Unsupported | undefined> {
  const notActivated = unsupported("service-worker-failed", "it was not activated");
  if (!(source instanceof URL)) {
    return source.active !== null || (await isActivated(source)) ? undefined : notActivated;
  }
  const other = await otherWorker(container, source);
  if (other !== undefined) return unsupported("other-service-worker", other);
  const script = withPolicy(source, policy);
  try {
    const registration = await container.register(script);
    const isActive = registration.active?.scriptURL === script.href;
    return isActive || (await isActivated(registration)) ? undefined : notActivated;
  } catch (thrown) {
    return unsupported("service-worker-failed", thrownText(thrown));
  }
}

/** Replaces a worker that adds other headers. Pages have the new ones when they are next loaded. */
export async function changePolicy(
  container: ServiceWorkerContainer,
  source: WorkerSource,
  policy: IsolationPolicy,
): Promise<void> {
  const controller = container.controller?.scriptURL;
  if (controller === undefined || !(source instanceof URL) || !isSameFile(controller, source)) return;
  const script = withPolicy(source, policy);
  // Without a network the next visit does it.
  if (controller !== script.href) await container.register(script).catch(() => undefined);
}

/** The worker reads the policy from its address. */
function withPolicy(source: URL, policy: IsolationPolicy): URL {
  const script = new URL(source);
  script.searchParams.set("policy", policy);
  return script;
}

/** Another worker of the same pages, which a registration would replace. */
async function otherWorker(container: ServiceWorkerContainer, source: URL): Promise<string | undefined> {
  const scope = scopeOf(source);
  const registration = await container.getRegistration(scope).catch(() => undefined);
  if (registration?.scope !== scope) return undefined;
  const { active, waiting, installing } = registration;
  const found = (active ?? waiting ?? installing)?.scriptURL;
  return found === undefined || isSameFile(found, source) ? undefined : found;
}

function isSameFile(found: string, source: URL): boolean {
  return new URL(found).pathname === source.pathname;
}

/** Waits for a worker that is being installed, and says whether it was. */
async function isActivated({ installing, waiting }: ServiceWorkerRegistration): Promise<boolean> {
  const worker = installing ?? waiting;
  if (worker === null) return false;
  await new Promise<void>((resolve) => {
    const look = () => {
      if (worker.state === "activated" || worker.state === "redundant") resolve();
    };
    worker.addEventListener("statechange", look);
    look();
  });
  return worker.state === "activated";
}
