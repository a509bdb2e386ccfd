/** Events of a page's life: it is frozen in the background or in the history, thawed, and left. */

/** Reactions to the events. */
export interface PageEvents {
  /** Nothing runs from now on until `resume`. */
  freeze?(): void;
  resume?(): void;
  /** The page may end without a further event. */
  hide?(): void;
}

/** Listens until the returned function is called. Workers have no such events. */
export function watchPage({ freeze, resume, hide }: PageEvents): () => void {
  if (typeof document === "undefined") return () => undefined;
  const ended = new AbortController();
  const { signal } = ended;
  const kept = (work: (() => void) | undefined) => (event: PageTransitionEvent) => {
    if (event.persisted) work?.();
  };
  document.addEventListener("freeze", () => freeze?.(), { signal });
  document.addEventListener("resume", () => resume?.(), { signal });
  document.addEventListener("visibilitychange", () => document.hidden && hide?.(), { signal });
  addEventListener("pagehide", () => hide?.(), { signal });
  // Browsers without the event `freeze` have these.
  addEventListener("pagehide", kept(freeze), { signal });
  addEventListener("pageshow", kept(resume), { signal });
  return () => ended.abort();
}
