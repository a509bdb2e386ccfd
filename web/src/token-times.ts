/** Arrival times of tokens. */

/** Tokens that arrive within this time belong to one message. */
const MESSAGE_MS = 0.5;

/** Collects arrival times. Tokens of one message share the time since the previous message. */
export class TokenTimes {
  readonly #start = performance.now();
  /** Milliseconds of each token. */
  readonly #milliseconds: number[] = [];
  #groupStart = this.#start;
  #lastArrival = this.#start;
  #groupSize = 0;

  /** Records a token. */
  add(): void {
    const now = performance.now();
    if (this.#groupSize > 0 && now - this.#lastArrival > MESSAGE_MS) {
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

  /** Milliseconds of each token; the first one includes the prompt. */
  get milliseconds(): readonly number[] {
    return this.#milliseconds;
  }

  /** Tokens per second after the first message; `undefined` before the second. */
  get rate(): number | undefined {
    const [first = 0, ...others] = this.#milliseconds;
    const rest = others.reduce((sum, time) => sum + time, 0);
    return others.length === 0 || first === rest ? undefined : (1000 * others.length) / rest;
  }
}
