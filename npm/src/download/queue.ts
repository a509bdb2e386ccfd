/** Those who wait for something to happen. */

/** See the module. */
export class Queue {
  #waiting: { resolve: () => void; reject: (reason: unknown) => void }[] = [];
  #failed: { readonly reason: unknown } | undefined;
  /** Told at each wake, too. */
  onWake: (() => void) | undefined;

  /** Resolves at the next {@link wake}. */
  next(): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed.reason);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Something has happened. */
  wake(): void {
    for (const { resolve } of this.#take()) resolve();
    this.onWake?.();
  }

  /** Nothing will happen any more. */
  fail(reason: unknown): void {
    this.#failed ??= { reason };
    for (const { reject } of this.#take()) reject(reason);
    this.onWake?.();
  }

  #take() {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
