/** Progress of a load as the Prompt API tells it. */

/** The target of `downloadprogress` events while a session is created. */
export class CreateMonitor extends EventTarget {
  ondownloadprogress: ((event: Event) => void) | null = null;
  #last = -1;

  /** Shares grow; the first is 0 and the last 1. */
  report(loaded: number): void {
    if (loaded <= this.#last) return;
    this.#last = loaded;
    const event = new Event("downloadprogress"); // a ProgressEvent of older browsers has integers only
    const fields = { lengthComputable: true, loaded, total: 1 };
    for (const [name, value] of Object.entries(fields))
      Object.defineProperty(event, name, { value, enumerable: true });
    this.ondownloadprogress?.(event);
    this.dispatchEvent(event);
  }
}
