#!/usr/bin/env node
/**
 * Scores of Lighthouse for the views of the built page, in the installed Chromium.
 *
 *     node lighthouse.mjs [--desktop] [--view NAME ...]
 *
 * Prints a row a view and what takes points from it. Fails below 95.
 */

import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import lighthouse, { desktopConfig } from "lighthouse";
import { launch } from "./browser.mjs";
import { freePort, PATIENCE, startPreview } from "./tests/preview.mjs";

export const VIEWS = ["story", "chat", "models", "benchmark", "parity", "explorer"];

/** What depends on the page alone, not on the machine's speed. */
export const STEADY = ["accessibility", "best-practices", "seo"];

/** Lowest score that passes. */
export const MIN_SCORE = 95;

/** @type {import("lighthouse").Flags} */
const QUICK = { throttlingMethod: "provided", pauseAfterFcpMs: 0, pauseAfterLoadMs: 0 };

/** A browser that Lighthouse can drive, and what ends it. */
export async function startBrowser() {
  const port = await freePort();
  const browser = await launch([`--remote-debugging-port=${port}`], { isFirstVisit: true });
  return { port, stop: () => browser.close() };
}

/**
 * The scores of an address, of 100 each, and the audits that took points.
 * @param {string} url @param {{ port: number, categories: string[], desktop?: boolean, isQuick?: boolean }} options
 *     `isQuick`: no pauses that only the measurement of speed needs
 * @returns {Promise<{ scores: Record<string, number>, findings: string[] }>}
 */
export async function judge(url, { port, categories, desktop = false, isQuick = false }) {
  const { timeout } = PATIENCE;
  const patience = { maxWaitForFcp: timeout, maxWaitForLoad: timeout };
  const flags = { port, onlyCategories: categories, ...patience, ...(isQuick && QUICK) };
  const result = await lighthouse(url, flags, desktop ? desktopConfig : undefined);
  if (result === undefined) throw new Error(`Lighthouse has no result for ${url}`);
  const { lhr } = result;
  if (lhr.runtimeError) throw new Error(`${url}: ${lhr.runtimeError.message}`);
  const found = Object.values(lhr.categories);
  const scores = found.map(({ id, score }) => [id, Math.round(100 * (score ?? 0))]);
  const weighed = found.flatMap(({ auditRefs }) => auditRefs.filter(({ weight }) => weight > 0));
  const findings = weighed.flatMap(({ id }) => {
    const audit = lhr.audits[id];
    return audit && audit.score !== null && audit.score < 0.9 ? [wordsOf(audit)] : [];
  });
  return { scores: Object.fromEntries(scores), findings };
}

/** @param {import("lighthouse").Result["audits"][string]} audit */
function wordsOf({ id, title, displayValue, details }) {
  const items = details && "items" in details ? JSON.stringify(details.items).slice(0, 600) : "";
  return [`${id}: ${title}`, displayValue, items].filter(Boolean).join(" ");
}

async function main() {
  const { values } = parseArgs({
    options: { desktop: { type: "boolean", default: false }, view: { type: "string", multiple: true } },
  });
  const categories = ["performance", ...STEADY];
  process.stdout.write(`| view | ${categories.join(" | ")} |\n`);
  const server = await startPreview({});
  const browser = await startBrowser();
  try {
    for (const view of values.view ?? VIEWS) {
      const options = { port: browser.port, categories, desktop: values.desktop };
      const { scores, findings } = await judge(`${server.url}#${view}`, options);
      const row = categories.map((category) => scores[category] ?? 0);
      process.stdout.write(
        `| ${[view, ...row].join(" | ")} |\n${findings.map((one) => `  ${one}\n`).join("")}`,
      );
      if (row.some((score) => score < MIN_SCORE)) process.exitCode = 1;
    }
  } finally {
    await browser.stop();
    await server.stop();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
