/** Runs the tests of the page. Those of `FULL` run with `SETUN_FULL=1` alone, as `cargo xtask test --full` sets it. */

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Lighthouse judges accessibility by axe, which every check has for every view. */
const FULL = ["lighthouse.test.mjs"];

const chosen = readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith(".test.mjs") && (process.env.SETUN_FULL === "1" || !FULL.includes(name)),
);
const files = chosen.map((name) => join(import.meta.dirname, name));
const tests = spawn(process.execPath, ["--test", ...process.argv.slice(2), ...files], { stdio: "inherit" });
tests.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
