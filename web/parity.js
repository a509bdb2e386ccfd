/** Values of the reference implementation for the view "Parity", computed while the page is built. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";

const MODULE = "virtual:parity";

/** The text that is compared, greedily decoded by the built-in model. */
const PROMPT = "Once upon a time, a little fox found a red balloon";
const MAX_TOKENS = 48;

/** @returns {import("vite").Plugin} */
export function parity() {
  /** @type {ReturnType<typeof reference> | undefined} */
  let found;
  let folder = "dist";
  const expected = () => {
    found ??= reference();
    return found;
  };
  return {
    name: "parity",
    configResolved: ({ root, build }) => {
      folder = join(root, build.outDir);
    },
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
    load: async (id) =>
      id === `\0${MODULE}` ? `export default ${JSON.stringify(await expected())};` : undefined,
    closeBundle: {
      sequential: true,
      // The check compares it with the command's.
      handler: async () => found && writeFileSync(join(folder, "parity.json"), JSON.stringify(await found)),
    },
  };
}

/** The scalar reference implementation's tokens and log-probabilities. */
async function reference() {
  const { load } = await import("setun");
  const model = await load(undefined, { backend: "scalar" });
  try {
    const options = { temperature: 0, maxTokens: MAX_TOKENS, logprobs: true };
    const generation = model.generate(PROMPT, options);
    const steps = [];
    for await (const { token, logprob, text } of generation) steps.push({ token, logprob, text });
    return { prompt: PROMPT, maxTokens: MAX_TOKENS, steps };
  } finally {
    await model.dispose();
  }
}
