import { defineConfig } from "vitest/config";
import { PATIENCE_MS } from "./test-support/patience.js";
import { IS_FULL } from "./test-support/selection.js";

const PATIENCE = { testTimeout: PATIENCE_MS, hookTimeout: PATIENCE_MS };

/** Files that only a full check runs: hosts and tools beside those that most users have. */
const FULL = ["bundlers", "examples", "extension", "next", "runtimes"].map(
  (name) => `packaging-tests/${name}.test.js`,
);

export default defineConfig({
  test: {
    expect: { poll: { timeout: PATIENCE_MS / 2 } },
    teardownTimeout: PATIENCE_MS,
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/**/*.test.ts"], ...PATIENCE } },
      slow("packaging", "packaging-tests/*.test.js", {
        exclude: IS_FULL ? [] : FULL,
        maxWorkers: 1,
        sequence: { groupOrder: 1 },
      }),
      slow("browser", "browser-tests/*.test.js", { maxWorkers: 2, sequence: { groupOrder: 2 } }),
      slow("equality", "equality-tests/*.test.js", { sequence: { groupOrder: 3 } }),
    ],
  },
});

/** Tests of the packed package in servers and browsers: few files at a time, one project after the other. */
function slow(name, include, order) {
  return { extends: true, test: { name, include: [include], ...order, ...PATIENCE } };
}
