/** Waiting for events of a download. */

/** A list of promises that resolve together. */
export class Waiters {
  #waiting: { resolve: () => void; reject: (reason: unknown) => void }[] = [];
  #failed: { readonly reason: unknown } | undefined;
  /** Called at each wake, too. */
  onWake: (() => void) | undefined;

  /** Resolves at the next {@link wake}. */
  next(): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed.reason);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Resolves all waiting promises. */
  wake(): void {
    for (const { resolve } of this.#takeWaiting()) resolve();
    this.onWake?.();
  }

  /** Rejects all waiting and later promises. */
  fail(reason: unknown): void {
    this.#failed ??= { reason };
    for (const { reject } of this.#takeWaiting()) reject(reason);
    this.onWake?.();
  }

  #takeWaiting() {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
