/** Speculative decoding: the same text in fewer steps, by prompt lookup and by a draft model. */

import { load } from "setun";

const prompt = "Once upon a time there was a fox. ".repeat(4);
const options = { temperature: 0, maxTokens: 60 };

/** The text of a model, and its number of steps. */
async function measure(model, lookahead) {
  const before = await model.metrics();
  const text = await model.generate(prompt, { ...options, speculative: { lookahead } }).text();
  const after = await model.metrics();
  return {
    text,
    steps: after.steps - before.steps,
    accepted: after.acceptedTokens - before.acceptedTokens,
    drafted: after.draftTokens - before.draftTokens,
  };
}

const model = await load();
const plain = await measure(model, 0);
const lookup = await measure(model, 12);
await model.dispose();

// A draft model is smaller than its model. This one only shows the option: it is the same model.
const source = new URL("../model/stories.safetensors", import.meta.resolve("setun"));
const pair = await load(source, { speculative: { draft: source } });
const drafted = await measure(pair, 8);
await pair.dispose();

for (const [name, { steps, accepted, drafted: proposed }] of Object.entries({ plain, lookup, drafted })) {
  console.log(`${name}: ${steps} steps, ${accepted} of ${proposed} draft tokens accepted`);
}
console.log(`equal texts: ${lookup.text === plain.text && drafted.text === plain.text}`);
