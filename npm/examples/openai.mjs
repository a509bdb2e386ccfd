/** Calls the model as the OpenAI client does: `node openai.mjs "Once upon a time"`. */

import { load } from "setun";
import { APIError, createClient } from "setun/openai";

const prompt = process.argv[2] ?? "Once upon a time";

const model = await load();
const client = createClient(model);

const stream = await client.completions.create({ prompt, max_tokens: 40, seed: 7, stream: true });
process.stdout.write(prompt);
for await (const { choices } of stream) process.stdout.write(choices[0].text);

const { choices, usage } = await client.completions.create({
  prompt,
  max_tokens: 8,
  n: 3,
  temperature: 1,
  seed: 7,
});
console.log(`\n\n${usage.completion_tokens} tokens of three texts:`);
for (const { text } of choices) console.log(`-${text}`);

try {
  await client.completions.create({ prompt, suffix: "The end." });
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.log(`\nrefused: ${error.code}, ${error.param}`);
}
await model.dispose();
