import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type LoadPhase, type LoadProgress, ProgressReporter } from "../src/load-progress.js";

const TOTAL = 1000;

let sent: LoadProgress[];
let reporter: ProgressReporter;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  sent = [];
  reporter = new ProgressReporter((progress) => sent.push(progress));
});
afterEach(() => vi.useRealTimers());

/** Reports bytes of a phase, and lets time pass afterwards. */
function report(phase: LoadPhase, loadedBytes: number, milliseconds = 0): void {
  reporter.report({ phase, loadedBytes, totalBytes: TOTAL, file: "model.safetensors" });
  vi.advanceTimersByTime(milliseconds);
}

it("sends one phase at most every 100 ms", () => {
  for (let at = 0; at < 250; at += 1) report("downloading", at, 1);
  expect(sent.map(({ loadedBytes }) => loadedBytes)).toEqual([0, 100, 200]);
});

it("sends each change of phase at once", () => {
  const phases = ["connecting", "downloading", "waiting", "downloading", "packing", "checking"] as const;
  for (const phase of phases) {
    report(phase, 1);
    report(phase, 2);
  }
  expect(sent.map(({ phase }) => phase)).toEqual(phases);
  expect(sent.every(({ loadedBytes }) => loadedBytes === 1)).toBe(true);
});

it("counts the interval from the change of phase", () => {
  report("connecting", 0, 90);
  report("downloading", 1, 99);
  report("downloading", 2, 1);
  report("downloading", 3);
  expect(sent.map(({ loadedBytes }) => loadedBytes)).toEqual([0, 1, 3]);
});

it("ends with the total, also right after a report that was held back", () => {
  report("downloading", 0, 1);
  report("downloading", 999);
  reporter.ready();
  expect(sent.map(({ phase, loadedBytes }) => [phase, loadedBytes])).toEqual([
    ["downloading", 0],
    ["ready", TOTAL],
  ]);
});

it("ends with the bytes so far where no server told a total", () => {
  const progress: LoadProgress = { phase: "downloading", loadedBytes: 1, file: "a" };
  reporter.report(progress);
  reporter.report({ ...progress, loadedBytes: 7 });
  reporter.ready();
  expect(sent.at(-1)).toMatchObject({ phase: "ready", loadedBytes: 7 });
});

it("sends no end of a load that reported nothing", () => {
  reporter.ready();
  expect(sent).toEqual([]);
});
