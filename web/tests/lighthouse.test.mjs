/** Scores of Lighthouse that do not depend on the machine's speed. `node lighthouse.mjs` has all of them. */

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { judge, MIN_SCORE, STEADY, startBrowser } from "../lighthouse.mjs";
import { startPreview } from "./preview.mjs";

/** @type {Awaited<ReturnType<typeof startPreview>>} */
let server;
/** @type {Awaited<ReturnType<typeof startBrowser>>} */
let browser;
before(async () => {
  server = await startPreview({});
  browser = await startBrowser();
});
after(async () => {
  await browser.stop();
  await server.stop();
});

// The views share a document: axe looks at each of them, and these are the first that visitors see.
for (const view of ["story", "chat"]) {
  it(`Lighthouse: ${STEADY.join(", ")} of the view ${view}`, async () => {
    const options = { port: browser.port, categories: STEADY, isQuick: true };
    const { scores, findings } = await judge(`${server.url}#${view}`, options);
    assert.deepEqual(Object.keys(scores).sort(), STEADY.toSorted());
    for (const [category, score] of Object.entries(scores))
      assert.ok(score >= MIN_SCORE, `${category} ${score}: ${findings.join("\n")}`);
  });
}
