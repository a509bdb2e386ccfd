/** Aborts a generation, saves the session to a file, and continues it from there. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { load } from "setun";

const file = new URL("story.session", import.meta.url);
const options = { temperature: 0, maxTokens: 40 };

const model = await load();
const session = model.session();
await session.push("Once upon a time");

// Stop after ten tokens. An aborted `signal` would reject instead of ending the text.
const generation = session.generate(options);
const tokens = [];
for await (const { token } of generation) {
  tokens.push(token);
  if (tokens.length === 10) break;
}
await session.push(tokens);
await writeFile(file, await session.save());
await model.dispose();

const other = await load();
const restored = await other.restore(await readFile(file));
const rest = await restored.generate({ ...options, maxTokens: 30 }).text();
const { cachedPromptTokens } = await other.metrics();
console.log(`${await other.detokenize(restored.tokens)}${rest}`);
console.log(`${cachedPromptTokens} of ${restored.tokens.length} tokens were in the saved KV cache`);
await other.dispose();
await rm(file);
