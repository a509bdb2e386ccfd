/** Retries with exponential backoff. */

import { SetunError } from "../errors.js";
import { RetryableError } from "./errors.js";
import type { DownloadSettings } from "./settings.js";

/** A counter of failed attempts. */
export class RetryBudget {
  readonly #settings: DownloadSettings;
  readonly #signal: AbortSignal;
  #failed = 0;

  constructor(settings: DownloadSettings, signal: AbortSignal) {
    this.#settings = settings;
    this.#signal = signal;
  }

  /** Resets the count after progress. */
  reset(): void {
    this.#failed = 0;
  }

  /**
   * Waits before the next attempt.
   *
   * @throws any error that is no {@link RetryableError}; the final error after the last attempt or for too long a
   * wait.
   */
  async wait(thrown: unknown): Promise<void> {
    if (!(thrown instanceof RetryableError)) throw thrown;
    const { attempts, maxRetryAfter } = this.#settings;
    this.#failed += 1;
    if (this.#failed >= Math.min(attempts, thrown.maxAttempts)) throw thrown.error;
    const demanded = thrown.wait ?? 0;
    if (demanded > maxRetryAfter) {
      const seconds = Math.ceil(demanded / 1000);
      const message = `${thrown.error.message} and asks to wait ${seconds} s`;
      throw new SetunError("network", message, { cause: thrown.error });
    }
    await sleep(Math.max(demanded, this.#backoff()), this.#signal);
  }

  /** Random half of the interval avoids simultaneous retries. */
  #backoff(): number {
    const { backoff, maxBackoff } = this.#settings;
    const whole = Math.min(backoff * 2 ** Math.min(this.#failed - 1, 16), maxBackoff);
    return (whole / 2) * (1 + Math.random());
  }
}

/** Repeats an operation until it succeeds or fails finally. */
export async function withRetries<Result>(
  settings: DownloadSettings,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const attempts = new RetryBudget(settings, signal);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (thrown) {
      signal.throwIfAborted();
      await attempts.wait(thrown);
    }
  }
}

/** Waits; an aborted signal rejects with its reason. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** Milliseconds of a `Retry-After` header, which has seconds or a date. */
export function retryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^\s*\d+\s*$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
