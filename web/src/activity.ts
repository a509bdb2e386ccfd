/** The running operations of the page, which stop together. */

/** A set of operations that can be stopped. */
export class Activity {
  readonly #onChange: (isRunning: boolean) => void;
  readonly #operations = new Set<Promise<void>>();
  #controller: AbortController | undefined;

  /** `onChange` is called when the first operation starts and when the last one ends. */
  constructor(onChange: (isRunning: boolean) => void) {
    this.#onChange = onChange;
  }

  get isRunning(): boolean {
    return this.#controller !== undefined;
  }

  /** Starts an operation. */
  start(work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#onChange(true);
    }
    const ended = work(this.#controller.signal).finally(() => {
      this.#operations.delete(ended);
      if (this.#operations.size > 0) return;
      this.#controller = undefined;
      this.#onChange(false);
    });
    this.#operations.add(ended);
  }

  /** Waits until nothing runs. */
  async idle(): Promise<void> {
    while (this.#operations.size > 0) await Promise.allSettled(this.#operations);
  }

  /** Stops all operations and waits for them. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    await Promise.all(this.#operations);
  }
}
