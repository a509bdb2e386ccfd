/** Notes in the session's storage about reloads for isolation, so that none repeats. */

import type { IsolationPolicy } from "./headers.js";

/** The session's storage. The getter throws where a browser forbids storage. @internal */
export interface Session {
  readonly sessionStorage?: Pick<Storage, "getItem" | "setItem" | "removeItem">;
}

/** The policies that this tab was loaded again for since it was last isolated. */
export function triedPolicies(session: Session, key: string): readonly string[] {
  const noted = attempt(() => session.sessionStorage?.getItem(key));
  return noted?.split(" ") ?? [];
}

/** Notes policies. Says whether they can be read again. */
export function noteTried(session: Session, key: string, policies: readonly string[]): boolean {
  const value = policies.join(" ");
  attempt(() => session.sessionStorage?.setItem(key, value));
  return attempt(() => session.sessionStorage?.getItem(key)) === value;
}

/** Once a page is isolated, what was tried is of no concern. */
export function forgetTried(session: Session, key: string): void {
  attempt(() => session.sessionStorage?.removeItem(key));
}

/** The first policy that was not tried. */
export function nextPolicy(
  policies: readonly IsolationPolicy[],
  tried: readonly string[],
): IsolationPolicy | undefined {
  return policies.find((policy) => !tried.includes(policy));
}

function attempt<Result>(act: () => Result): Result | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
