/** What runs at the model's end until it ends by itself or is stopped. */

/** A generation or a search, from the moment it is asked for. */
export class ActiveRequest {
  readonly credit: Credit;
  #ended = Promise.resolve();
  #stop: (() => void) | undefined;
  #isStopped = false;

  constructor(credit: number) {
    this.credit = new Credit(credit);
  }

  /** Resolves, or rejects, when it has freed what it had of the model. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** It has begun; `stop` ends it, at once if that was asked for meanwhile. */
  begin(stop: () => void, ended: Promise<void>): Promise<void> {
    this.#stop = stop;
    this.#ended = ended;
    if (this.#isStopped) stop();
    return ended;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stop?.();
    // The last turn reports the end whether or not anybody is still reading.
    this.credit.add(Number.POSITIVE_INFINITY);
  }
}

export class Credit {
  #turns: number;
  #wake: (() => void) | undefined;

  constructor(turns: number) {
    this.#turns = turns;
  }

  /** Permits `turns` more. */
  add(turns: number): void {
    this.#turns += turns;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Uses up one turn, waiting for it if there is none. One taker at a time. */
  async take(): Promise<void> {
    while (this.#turns <= 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#turns -= 1;
  }
}
