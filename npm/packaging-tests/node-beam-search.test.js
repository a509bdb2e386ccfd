/** Beam search and metrics, in Node. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Results of the `setun` command, whose tests read the same file. */
const GOLDEN = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/embedded-beams.json", import.meta.url), "utf8"),
);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
});
afterAll(() => project?.remove());

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  await writeFiles(project.folder, { "script.js": `import { load } from "setun";\n${body}` });
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], {
      encoding: "utf8",
    }),
  );
}

describe("beam search in Node", () => {
  it("returns the texts and scores of the command line, to the bit", async () => {
    const searches = GOLDEN.map((/** @type {any} */ { prompt, options }) => ({ prompt, options }));
    const found = await inNode(`
      const model = await load();
      const searches = ${JSON.stringify(searches)};
      // All at once: results do not depend on the batch.
      const found = await Promise.all(searches.map(({ prompt, options }) => model.beamSearch(prompt, options)));
      console.log(JSON.stringify(found));
    `);
    for (const [index, { texts }] of GOLDEN.entries()) {
      const named = texts.map((/** @type {any} */ { finish_reason: finishReason, ...text }) => {
        return { ...text, finishReason };
      });
      expect(found[index]).toEqual(named);
    }
  });

  it("names wrong options, and ends early when it is aborted or late", async () => {
    const { codes, aborted, overdue, text, running } = await inNode(`
      const model = await load(undefined, { maxConcurrent: 4 });
      const wrong = [{ numBeams: 5 }, { numReturnSequences: 5 }, { numBeams: 4, numBeamGroups: 3, diversityPenalty: 1 }, { numBeamGroups: 2 }];
      const codes = [];
      for (const options of wrong) codes.push(await model.beamSearch("Once", options).catch(({ code, message }) => [code, message]));
      const controller = new AbortController();
      const stepsReach = async (count) => {
        while ((await model.metrics()).steps < count) await new Promise((resolve) => setImmediate(resolve));
      };
      const search = model.beamSearch("Once", { signal: controller.signal, minTokens: 500 }).catch((reason) => reason);
      await stepsReach(3);
      controller.abort("enough");
      const aborted = await search;
      // The engine's clock.
      const now = performance.now.bind(performance);
      let late = 0;
      performance.now = () => now() + late;
      const timed = model.beamSearch("Once", { timeout: 600_000, minTokens: 500 });
      await stepsReach((await model.metrics()).steps + 3);
      late = 600_000;
      const [overdue] = await timed;
      const text = await model.generate("Once", { temperature: 0, maxTokens: 3 }).text();
      const { running } = await model.metrics();
      console.log(JSON.stringify({ codes, aborted, overdue, text, running }));
    `);
    expect(codes.map(([code]) => code)).toEqual(Array.from({ length: 4 }, () => "bad-option"));
    expect(codes.map(([, message]) => message)).toEqual([
      "option `numBeams` is 5, expected 1 to 4, `max_concurrent` of the engine",
      "option `numReturnSequences` is 5, expected 1 to 4, the beams",
      "option `numBeamGroups` is 3, expected a divisor of 4, the beams",
      "option `diversityPenalty` is 0, expected a number above 0, as there are groups",
    ]);
    expect(aborted).toBe("enough");
    expect(overdue?.finishReason).toBe("timeout");
    expect(text.length).toBeGreaterThan(0);
    expect(running).toBe(0);
  });
});

describe("metrics in Node", () => {
  it("count steps, tokens and times", async () => {
    const { before, after } = await inNode(`
      const model = await load();
      const before = await model.metrics();
      const options = { temperature: 0, maxTokens: 30, minTokens: 30 };
      await Promise.all([1, 2].map(() => model.generate("Once upon a time", options).text()));
      await model.generate("Once upon a time, there was a little girl named Lily.", options).text();
      const again = "Once upon a time there was a fox. ".repeat(4);
      await model.generate(again, { ...options, speculative: { lookahead: 8 } }).text();
      await model.generate(again, options).text();
      await model.generate("A", { timeout: 0 }).text();
      const stopped = model.generate("A");
      stopped.stop();
      await stopped.result;
      await model.generate("A", { logitsProcessors: [() => { throw 1; }] }).text().catch(() => undefined);
      console.log(JSON.stringify({ before, after: await model.metrics() }));
    `);
    expect(before).toMatchObject({ steps: 0, tokens: 0, admissions: 0, queueTime: { count: 0 } });
    expect(before.queueTime.mean).toBeUndefined();
    expect(after).toMatchObject({ tokens: 150, finished: 5, timedOut: 1, aborted: 1, failed: 1, running: 0 });
    expect(after.admissions).toBeGreaterThanOrEqual(6);
    expect(after.prefixHits).toBeGreaterThan(0);
    expect(after.cachedPromptTokens).toBeGreaterThan(0);
    expect(after.draftTokens).toBeGreaterThanOrEqual(after.acceptedTokens);
    expect(after.timeToFirstToken.count).toBe(5);
    expect(after.interTokenLatency.count).toBe(5 * 29);
    expect(after.stepTime.count).toBe(after.steps);
    expect(after.stepRows.count).toBe(after.steps);
    expect(after.stepRows.mean).toBeCloseTo(after.rows / after.steps);
    for (const times of [after.queueTime, after.timeToFirstToken, after.interTokenLatency, after.stepTime]) {
      expect(times.mean).toBeGreaterThan(0);
      expect(times.p50).toBeLessThanOrEqual(times.p90);
      expect(times.p90).toBeLessThanOrEqual(times.p99);
      expect(times.p99).toBeLessThan(60_000);
    }
    expect(after.memory.layers).toBeGreaterThan(100_000);
    expect(after.memory.head).toBeGreaterThan(100_000);
    expect(after.memory.kvCache).toBeGreaterThan(0);
  });
});
