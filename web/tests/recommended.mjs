/** A server that has a small model in the place of the recommended one. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startFaultyServer } from "../../npm/test-support/faulty-server.js";
import { WEB } from "./preview.mjs";

/** A small model in the recommended one's format. */
const GGUF = join(WEB, "../tests/fixtures/families/qwen3-bonsai/type142.gguf");

/** Answers for the Hub. @param {import("playwright-core").BrowserContext} context */
export async function playHub(context) {
  const hub = await startFaultyServer({ cors: { exposes: true, allows: "range" } });
  hub.putHub("prism-ml/Ternary-Bonsai-1.7B-gguf", { "Ternary-Bonsai-1.7B-PQ2_0.gguf": readFileSync(GGUF) });
  await context.route("https://huggingface.co/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    await route
      .fetch({ url: hub.at(pathname + search) })
      .then((response) => route.fulfill({ response }))
      .catch(() => undefined);
  });
  return hub;
}
