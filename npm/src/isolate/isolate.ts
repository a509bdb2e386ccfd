/** Cross-origin isolation of a page by a service worker, for hosts that send no headers. */

import { SetunError } from "../errors.js";
import { shown } from "../shown.js";
import { type Browser, type IsolationPolicy, isPolicy, likelyPolicies } from "./headers.js";
import { type IsolationObstacle, type Unsupported, unsupported } from "./obstacles.js";
import { changePolicy, register, scopeOf, type WorkerSource, workerKey } from "./registration.js";
import { forgetTried, nextPolicy, noteTried, type Session, triedPolicies } from "./reloads.js";

/** Options of `isolate`. */
export interface IsolateOptions {
  /**
   * Address of the service worker, relative to the page: `dist/isolate-worker.js` of this package, copied into the
   * page's folder or one above, since a service worker is responsible for its folder. Default `"./isolate-worker.js"`.
   *
   * A page that has a service worker passes its registration; that worker calls `addIsolationHeaders`.
   */
  readonly serviceWorker?: string | URL | ServiceWorkerRegistration;
  /** The headers. Default `"auto"`: those that the browser takes, with the fewest effects on the page. */
  readonly policy?: "auto" | IsolationPolicy;
  /** Whether the page may be loaded again now. Default: it may. */
  readonly mayReload?: () => boolean;
}

/**
 * The outcome of `isolate`.
 *
 * - `"isolated"`: the page is cross-origin isolated, and was before the call.
 * - `"reloading"`: the page is being loaded again, to be isolated.
 * - `"on-next-load"`: `mayReload` said no; the page is isolated when it is next loaded.
 * - `"unsupported"`: the page cannot be isolated, and runs on.
 */
export type Isolation = { readonly status: "isolated" | "reloading" | "on-next-load" } | Unsupported;

/** The parts of a page's global object that are used. @internal */
export interface Page extends Session {
  readonly crossOriginIsolated?: boolean;
  readonly isSecureContext?: boolean;
  readonly document?: { readonly baseURI: string };
  readonly location?: { readonly href: string; readonly protocol: string; reload(): void };
  readonly navigator?: Browser & { readonly serviceWorker?: ServiceWorkerContainer };
  readonly self?: unknown;
  readonly top?: unknown;
}

/** A page in which a service worker can be registered. */
interface Host {
  readonly document: NonNullable<Page["document"]>;
  readonly location: NonNullable<Page["location"]>;
  readonly container: ServiceWorkerContainer;
}

/** Isolates a page. The entry point's `isolate` does it with the page that it runs in. @internal */
export async function isolatePage(page: Page, options: IsolateOptions): Promise<Isolation> {
  const policies = policiesOf(page, options);
  const host = hostOf(page, policies);
  if (page.crossOriginIsolated === true) {
    if (typeof host !== "string") await keepIsolated(page, host, options);
    return { status: "isolated" };
  }
  if (typeof host === "string") return unsupported(host);
  const { container, location } = host;
  const source = sourceOf(host, options);
  const key = keyOf(source);
  const tried = triedPolicies(page, key);
  const policy = nextPolicy(policies, tried);
  if (policy === undefined) return unsupported("not-isolated");
  const scope = scopeOf(source);
  if (!location.href.startsWith(scope)) return unsupported("scope", scope);
  const obstacle = await register(container, source, policy);
  if (obstacle !== undefined) return obstacle;
  if (options.mayReload?.() === false) return { status: "on-next-load" };
  if (!noteTried(page, key, [...tried, policy])) return unsupported("no-storage");
  location.reload();
  return { status: "reloading" };
}

/** Policies to try, one a reload. What a page's own worker adds is not known, so that one is tried once. */
function policiesOf(page: Page, { policy = "auto", serviceWorker }: IsolateOptions): IsolationPolicy[] {
  if (isPolicy(policy)) return [policy];
  if (policy !== "auto") {
    const message = `policy is ${shown(policy)}, expected auto, document, credentialless or require-corp`;
    throw new SetunError("bad-option", message);
  }
  const likely = likelyPolicies(page.navigator ?? {});
  const policies = isRegistration(serviceWorker) ? likely.slice(0, 1) : likely;
  // A frame has the other ones of the outermost page.
  return isFramed(page) ? policies.filter((policy) => policy === "document") : [...policies];
}

/** The page as a host of service workers, or why it is none. */
function hostOf(page: Page, policies: readonly IsolationPolicy[]): Host | IsolationObstacle {
  const { document, location } = page;
  if (document === undefined || location === undefined) return "no-page";
  if (location.protocol.endsWith("-extension:")) return "extension";
  if (page.isSecureContext !== true || !/^https?:$/.test(location.protocol)) return "insecure";
  if (isFramed(page) && !policies.includes("document")) return "framed";
  const container = containerOf(page);
  return container === undefined ? "no-service-worker" : { document, location, container };
}

/** Prepares the next load, which may need another reload or other headers. */
async function keepIsolated(page: Page, host: Host, options: IsolateOptions): Promise<void> {
  const source = sourceOf(host, options);
  forgetTried(page, keyOf(source));
  if (isPolicy(options.policy)) await changePolicy(host.container, source, options.policy);
}

function sourceOf({ document }: Host, { serviceWorker }: IsolateOptions): WorkerSource {
  if (isRegistration(serviceWorker)) return serviceWorker;
  return new URL(serviceWorker ?? "./isolate-worker.js", document.baseURI);
}

function keyOf(source: WorkerSource): string {
  return `setun-isolate ${workerKey(source)}`;
}

function isFramed({ self, top }: Page): boolean {
  return self !== top;
}

/** A sandboxed frame throws. */
function containerOf(page: Page): ServiceWorkerContainer | undefined {
  try {
    return page.navigator?.serviceWorker;
  } catch {
    return undefined;
  }
}

function isRegistration(worker: IsolateOptions["serviceWorker"]): worker is ServiceWorkerRegistration {
  return typeof worker === "object" && "scope" in worker;
}
