/** Streams a text to the terminal: `node node.mjs "Once upon a time"`. */

import { load } from "setun";

const prompt = process.argv[2] ?? "Once upon a time";

const model = await load();
process.stdout.write(prompt);

const generation = model.generate(prompt, { maxTokens: 60, temperature: 0.8, seed: 7 });
for await (const { text } of generation) process.stdout.write(text);

const { finishReason, usage, timings } = await generation.result;
console.log(
  `\n${finishReason}: ${usage.completionTokens} tokens, ${timings.tokensPerSecond.toFixed(0)} tokens/s`,
);
await model.dispose();
