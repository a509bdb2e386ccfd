import { expect, it, onTestFinished, vi } from "vitest";
import { networkError, RetryableError } from "../../src/download/errors.js";
import { RetryBudget, retryAfter, sleep, withRetries } from "../../src/download/retry.js";
import { DEFAULT_SETTINGS } from "../../src/download/settings.js";

const settings = { ...DEFAULT_SETTINGS, attempts: 3, backoff: 0 };
const { signal } = new AbortController();
const later = (wait?: number) => new RetryableError(networkError("a", "broken"), { wait });

it("parses Retry-After as seconds or a date", () => {
  expect(retryAfter(" 7 ")).toBe(7000);
  expect(retryAfter("Sun, 06 Nov 1994 08:49:37 GMT")).toBe(0);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) });
  onTestFinished(() => void vi.useRealTimers());
  expect(retryAfter("Thu, 01 Jan 2026 00:00:20 GMT")).toBe(20_000);
  expect(retryAfter("soon")).toBeUndefined();
  expect(retryAfter(null)).toBeUndefined();
});

it("ends after attempts without progress", async () => {
  const attempts = new RetryBudget(settings, signal);
  for (let round = 0; round < 4; round += 1) {
    if (round === 2) attempts.reset();
    await attempts.wait(later());
  }
  await expect(attempts.wait(later())).rejects.toMatchObject({ code: "network", message: "a: broken" });
});

it("does not retry final failures and too long waits", async () => {
  const error = new Error("for good");
  await expect(new RetryBudget(settings, signal).wait(error)).rejects.toBe(error);
  const long = new RetryBudget(settings, signal).wait(later(301_000));
  await expect(long).rejects.toMatchObject({ code: "network", message: expect.stringContaining("301 s") });
  let times = 0;
  const work = async () => {
    times += 1;
    throw new RetryableError(networkError("a", "nobody"), { maxAttempts: 2 });
  };
  await expect(withRetries(settings, signal, work)).rejects.toMatchObject({ message: "a: nobody" });
  expect(times).toBe(2);
});

it("waits with jitter, twice as long each time", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const attempts = new RetryBudget({ ...settings, backoff: 40 }, signal);
  for (const whole of [40, 80]) {
    let isOver = false;
    const waited = attempts.wait(later()).then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(whole / 2 - 1);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(whole / 2 + 1);
    expect(isOver).toBe(true);
    await waited;
  }
});

it("stops waiting on an abort", async () => {
  const controller = new AbortController();
  const waiting = expect(sleep(10_000, controller.signal)).rejects.toBe("no");
  controller.abort("no");
  await waiting;
  await expect(sleep(10_000, controller.signal)).rejects.toBe("no");
});
