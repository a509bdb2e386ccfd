/**
 * Streams a text with the AI SDK: `npm install ai`, then `node ai-sdk.mjs "Once upon a time" SOURCE`.
 *
 * Without a source it is the story model, which has no chat template and continues the prompt.
 */

import { streamText } from "ai";
import { load } from "setun";
import { createSetun } from "setun/ai-sdk";

const [prompt = "Once upon a time", source] = process.argv.slice(2);
globalThis.AI_SDK_LOG_WARNINGS = false;

const model = await load(source);
const setun = createSetun(model);

const { textStream, usage, finishReason } = streamText({
  model: setun(),
  prompt,
  maxOutputTokens: 60,
  seed: 7,
  providerOptions: { setun: { minP: 0.05 } },
});
process.stdout.write(prompt);
for await (const text of textStream) process.stdout.write(text);

console.log(`\n${await finishReason}: ${(await usage).outputTokens} tokens`);
await model.dispose();
