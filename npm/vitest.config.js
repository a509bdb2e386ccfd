import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/**/*.test.ts"] } },
      slow("packaging", "packaging-tests/*.test.js", 1),
      slow("browser", "browser-tests/*.test.js", 2),
    ],
  },
});

/** Tests that install the packed package and start servers and browsers: so many files at a time. */
function slow(name, include, maxWorkers) {
  const patience = { testTimeout: 240_000, hookTimeout: 240_000 };
  return { extends: true, test: { name, include: [include], maxWorkers, ...patience } };
}
