/** Permission to go on, given in portions by whoever consumes: the back-pressure of a generation. */
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
