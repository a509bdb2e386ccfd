/** Headers of cross-origin isolation, and those that a browser takes. */

/**
 * Which headers isolate a page.
 *
 * - `"document"`: `Document-Isolation-Policy: isolate-and-credentialless`, of Chromium from 137 on. Frames and windows of
 *   other origins work as before.
 * - `"credentialless"`: `Cross-Origin-Opener-Policy` and `Cross-Origin-Embedder-Policy: credentialless`, of Chromium and
 *   Firefox. Images and scripts of other origins are requested without cookies.
 * - `"require-corp"`: the same with `require-corp`, of every browser. Other origins must allow what is loaded from them.
 */
export type IsolationPolicy = "document" | "credentialless" | "require-corp";

const HEADERS: Readonly<Record<IsolationPolicy, Readonly<Record<string, string>>>> = {
  document: { "Document-Isolation-Policy": "isolate-and-credentialless" },
  credentialless: embedder("credentialless"),
  "require-corp": embedder("require-corp"),
};

/** What is known of a browser, in pages and in workers. */
export interface Browser {
  readonly userAgent?: string;
  readonly userAgentData?: {
    readonly brands: readonly { readonly brand: string; readonly version: string }[];
    readonly mobile: boolean;
  };
}

/** Statuses without a body, with which a response cannot be made of one. */
const WITHOUT_BODY = [204, 205, 304];

/**
 * The response of a service worker with the headers that isolate a page: for pages and for the files of workers.
 *
 * Opaque responses, redirections and errors are returned as they are. The body is a stream and is not read.
 */
export function addIsolationHeaders(response: Response, policy: IsolationPolicy = likelyPolicy()): Response {
  const { status, statusText, body } = response;
  if (status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS[policy])) headers.set(name, value);
  return new Response(WITHOUT_BODY.includes(status) ? null : body, { status, statusText, headers });
}

/** Whether a value names a policy. */
export function isPolicy(name: unknown): name is IsolationPolicy {
  return typeof name === "string" && Object.hasOwn(HEADERS, name);
}

/**
 * The policies that a browser may take, the one with the fewest effects on the page first. A header that a browser does
 * not know has no effect, and none says which it knows.
 */
export function likelyPolicies(browser: Browser): readonly [IsolationPolicy, ...IsolationPolicy[]] {
  const { brands = [], mobile = false } = browser.userAgentData ?? {};
  const version = Number(brands.find(({ brand }) => brand === "Chromium")?.version ?? 0);
  if (version >= 137 && !mobile) return ["document", "credentialless", "require-corp"];
  const isCredentialless = version >= 96 || browser.userAgent?.includes("Firefox/");
  return isCredentialless ? ["credentialless", "require-corp"] : ["require-corp"];
}

function likelyPolicy(): IsolationPolicy {
  return likelyPolicies(globalThis.navigator ?? {})[0];
}

function embedder(value: string): Record<string, string> {
  return { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": value };
}
