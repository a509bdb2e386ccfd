/** Notice of a Content-Security-Policy that blocks a worker, of which the worker's own event says nothing. */

/** The used part of a `SecurityPolicyViolationEvent`. */
interface Violation {
  readonly effectiveDirective: string;
  readonly blockedURI: string;
}

/** The used part of a document, or of a worker's global scope. */
interface Target {
  addEventListener?(
    type: string,
    listener: (event: Violation) => void,
    options: { signal: AbortSignal },
  ): void;
}

/** What has been blocked since. */
export interface PolicyWatch {
  /** The change of the policy that allows the worker; `undefined` if no policy has blocked one. */
  remedy(): string | undefined;
  end(): void;
}

/** Watches until its end. */
export function watchPolicy(): PolicyWatch {
  const { document } = globalThis as { readonly document?: Target };
  const target = document ?? (globalThis as unknown as Target);
  const watch = new AbortController();
  let blocked: string | undefined;
  const note = ({ effectiveDirective, blockedURI }: Violation) => {
    if (effectiveDirective === "worker-src") blocked ??= blockedURI;
  };
  target.addEventListener?.("securitypolicyviolation", note, { signal: watch.signal });
  return {
    remedy: () => (blocked === undefined ? undefined : `add ${sourceOf(blocked)} to worker-src`),
    end: () => watch.abort(),
  };
}

/** The source that a policy has to name. */
function sourceOf(blocked: string): string {
  if (blocked.startsWith("blob")) return "blob: and the origin of setun's files";
  const { origin } = new URL(blocked);
  return origin === globalThis.origin ? "'self'" : origin;
}
