/** What the page does now; all of it is stopped at once. */

/** Works that can be stopped. */
export class Activity {
  readonly #onChange: (isRunning: boolean) => void;
  readonly #works = new Set<Promise<void>>();
  #controller: AbortController | undefined;

  /** Is told when there begins to be something, and when all has ended. */
  constructor(onChange: (isRunning: boolean) => void) {
    this.#onChange = onChange;
  }

  get isRunning(): boolean {
    return this.#controller !== undefined;
  }

  /** Starts one more. */
  start(work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#onChange(true);
    }
    const ended = work(this.#controller.signal).finally(() => {
      this.#works.delete(ended);
      if (this.#works.size > 0) return;
      this.#controller = undefined;
      this.#onChange(false);
    });
    this.#works.add(ended);
  }

  /** Stops all, and waits for it. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    await Promise.all(this.#works);
  }
}
