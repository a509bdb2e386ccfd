import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LoadPhase, type LoadProgress, ProgressReporter, steadyProgress } from "../src/load-progress.js";

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

/** Numbers below an end, from a seed. */
function draws(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

/** Reports of a load as downloads make them: parts of files, lost connections, wrong chunks, files that turn up or change. */
function drawnReports(below: (end: number) => number): LoadProgress[] {
  const files = [1 + below(1000)];
  const phases = ["connecting", "downloading", "waiting", "packing", "checking"] as const;
  const reports: LoadProgress[] = [];
  let [loaded, phase] = [0, 0];
  for (let step = 0; step < 60; step += 1) {
    const total = () => files.reduce((sum, bytes) => sum + bytes, 0);
    const change = below(10);
    if (change < 5) loaded = Math.min(total(), loaded + below(200));
    else if (change === 5) loaded = Math.max(0, loaded - below(300));
    else if (change === 6) files.push(1 + below(1000));
    else if (change === 7) phase = below(phases.length);
    else if (change === 8 && below(4) === 0) [loaded, files[0]] = [0, 1 + below(1000)];
    loaded = Math.min(loaded, total());
    const known = below(5) > 0 && { totalBytes: total() };
    reports.push({
      phase: phases[phase] ?? "connecting",
      loadedBytes: loaded,
      file: `${files.length}`,
      ...known,
    });
  }
  return reports;
}

describe("steady progress", () => {
  const SEED = Number(process.env.SETUN_SEED ?? 0);

  it(`never runs back within a phase, and has every report (SETUN_SEED=${SEED})`, () => {
    for (let draw = 0; draw < 500; draw += 1) {
      const reports = drawnReports(draws(SEED + draw));
      const seen: LoadProgress[] = [];
      const report = steadyProgress((progress) => seen.push(progress));
      reports.forEach(report);
      expect(seen.map(({ phase, file }) => [phase, file])).toEqual(
        reports.map(({ phase, file }) => [phase, file]),
      );
      for (const phase of new Set(seen.map((each) => each.phase))) {
        const own = seen.filter((each) => each.phase === phase);
        const shares = own.flatMap(({ loadedBytes, totalBytes }) =>
          totalBytes ? [loadedBytes / totalBytes] : [],
        );
        expect(shares).toEqual(shares.toSorted((one, other) => one - other));
        for (const { loadedBytes, totalBytes = Infinity } of own)
          expect(loadedBytes).toBeLessThanOrEqual(totalBytes);
      }
    }
  });

  it("keeps bytes that come again, and leaves out a total that has grown", () => {
    const seen: [number, number | undefined][] = [];
    const report = steadyProgress(({ loadedBytes, totalBytes }) => seen.push([loadedBytes, totalBytes]));
    const bytes = [
      [5, 10],
      [2, 10],
      [6, 10],
      [6, 100],
      [60, 100],
      [0, 30],
    ];
    for (const [loadedBytes = 0, totalBytes = 0] of bytes)
      report({ phase: "downloading", loadedBytes, totalBytes, file: "a" });
    expect(seen).toEqual([
      [5, 10],
      [5, 10],
      [6, 10],
      [6, undefined],
      [60, 100],
      [30, 30],
    ]);
  });
});
