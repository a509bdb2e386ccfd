/** Requests that run on the host until they end or are stopped. */

/** A running generation or beam search. */
export class ActiveRequest {
  readonly credit: Credit;
  #ended = Promise.resolve();
  #stop: (() => void) | undefined;
  #isStopped = false;

  constructor(credit: number) {
    this.credit = new Credit(credit);
  }

  /** Resolves, or rejects, when the resources of the model are freed. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Sets how the request is stopped, and stops it if that was requested meanwhile. */
  begin(stop: () => void, ended: Promise<void>): Promise<void> {
    this.#stop = stop;
    this.#ended = ended;
    if (this.#isStopped) stop();
    return ended;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stop?.();
    // The last batch reports the end even without a reader.
    this.credit.add(Number.POSITIVE_INFINITY);
  }
}

export class Credit {
  #turns: number;
  #wake: (() => void) | undefined;

  constructor(turns: number) {
    this.#turns = turns;
  }

  /** Grants credit for `turns` batches. */
  add(turns: number): void {
    this.#turns += turns;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Uses one unit of credit, waiting if there is none. One caller at a time. */
  async take(): Promise<void> {
    while (this.#turns <= 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#turns -= 1;
  }
}
