/** Time limit of a request without a byte, and its end by a signal. */

/** Why such a request has failed. */
export const IDLE_TIMEOUT = "nothing came for too long";

/** Limits of one request. */
export interface RequestLimits {
  /** Ends the request. */
  readonly controller: AbortController;
  /** The caller's. */
  readonly signal: AbortSignal;
  /** Milliseconds without a byte until the connection counts as broken. */
  readonly idleTimeout: number;
}

/** Aborts a request on its signal or after its idle timeout. */
export class RequestWatchdog {
  readonly signal: AbortSignal;
  readonly #limits: RequestLimits;
  readonly #abort = () => this.#limits.controller.abort(this.signal.reason);
  /** Whether nothing came for too long. */
  hasTimedOut = false;

  constructor(limits: RequestLimits) {
    this.#limits = limits;
    this.signal = limits.signal;
    this.signal.addEventListener("abort", this.#abort, { once: true });
    if (this.signal.aborted) this.#abort();
  }

  /** Does something that ends when bytes arrive, or when the request is aborted. */
  async guard<Result>(work: () => Promise<Result>): Promise<Result> {
    const timer = setTimeout(() => {
      this.hasTimedOut = true;
      this.#limits.controller.abort();
    }, this.#limits.idleTimeout);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  }

  /** The signal aborts the request no more. */
  end(): void {
    this.signal.removeEventListener("abort", this.#abort);
  }
}
