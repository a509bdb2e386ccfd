/** How long each token took to arrive. */

/** Tokens that arrive within this time came in one message. */
const TOGETHER_MS = 0.5;

/** Collects arrival times. Tokens come in groups; each is given its share of the time since the group before. */
export class Pace {
  readonly #start = performance.now();
  /** Milliseconds of each token. */
  readonly #milliseconds: number[] = [];
  #groupStart = this.#start;
  #lastArrival = this.#start;
  #groupSize = 0;

  /** A token has arrived. */
  add(): void {
    const now = performance.now();
    if (this.#groupSize > 0 && now - this.#lastArrival > TOGETHER_MS) {
      this.#groupStart = this.#lastArrival;
      this.#groupSize = 0;
    }
    this.#groupSize += 1;
    this.#lastArrival = now;
    const first = this.#milliseconds.length + 1 - this.#groupSize;
    this.#milliseconds.length = first;
    const share = (now - this.#groupStart) / this.#groupSize;
    for (let token = 0; token < this.#groupSize; token += 1) this.#milliseconds.push(share);
  }

  /** Time of each token; the first one's holds the reading of the prompt. */
  get milliseconds(): readonly number[] {
    return this.#milliseconds;
  }

  /** Tokens a second after the first group, while there is a second one. */
  get rate(): number | undefined {
    const [first = 0, ...others] = this.#milliseconds;
    const rest = others.reduce((sum, time) => sum + time, 0);
    return others.length === 0 || first === rest ? undefined : (1000 * others.length) / rest;
  }
}
