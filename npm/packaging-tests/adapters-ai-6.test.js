/** The packed package beside `ai` 6, which runs on Node 20: an installation without a conflict, and texts of the core. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, npm, writeFiles } from "../test-support/project.js";

/** Turns as lines, which the story model was trained on. */
const TEMPLATE =
  "{% for m in messages %}{{ m.content }}{% if not loop.last or add_generation_prompt %}\n{% endif %}{% endfor %}";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({}, { ai: "6.0.325", zod: "4.6.6", typescript: "7.0.2" });
  const { folder } = embeddedModel(project.folder);
  const files = Object.entries({ ...folder, "chat_template.jinja": TEMPLATE });
  await writeFiles(
    project.folder,
    Object.fromEntries(files.map(([name, bytes]) => [`model/${name}`, bytes])),
  );
});
afterAll(() => project?.remove());

it("generates, streams, embeds and follows a format beside tools", async () => {
  const script = `
    import { readdirSync, readFileSync } from "node:fs";
    import { embedMany, generateText, Output, streamText, tool } from "ai";
    import { load } from "setun";
    import { createSetun } from "setun/ai-sdk";
    import { z } from "zod";
    globalThis.AI_SDK_LOG_WARNINGS = false;
    const names = readdirSync("model");
    const model = await load(Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync("model/" + name))])));
    const setun = createSetun(model);
    const core = await model.chat([{ role: "user", content: "The dog" }], { maxTokens: 12, seed: 3, temperature: 1 }).text();
    const settings = { model: setun(), prompt: "The dog", maxOutputTokens: 12, seed: 3, temperature: 1 };
    const { text } = await generateText(settings);
    let streamed = "";
    for await (const piece of streamText(settings).textStream) streamed += piece;
    const schema = z.object({ age: z.number().int().min(0).max(9) });
    const weather = tool({ inputSchema: z.object({}), execute: async () => "rain" });
    const { output } = await generateText({
      model: setun(), prompt: "The dog", seed: 1, tools: { weather }, toolChoice: "none", output: Output.object({ schema }),
    });
    const { embeddings } = await embedMany({ model: setun.embeddingModel(), values: ["a", "b"] });
    console.log(JSON.stringify({ core, text, streamed, age: schema.parse(output).age, vectors: embeddings.length }));
    await model.dispose();`;
  await writeFiles(project.folder, { "script.js": script });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  const told = JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
  expect([told.text, told.streamed]).toEqual([told.core, told.core]);
  expect(told.core.length).toBeGreaterThan(5);
  expect(told.vectors).toBe(2);
});

it("is taken by the declarations of `ai` 6", async () => {
  const program = `
    import { embed, generateText } from "ai";
    import { load } from "setun";
    import { createSetun } from "setun/ai-sdk";
    const setun = createSetun(await load());
    await generateText({ model: setun(), prompt: "a" });
    await embed({ model: setun.embeddingModel(), value: "a" });`;
  await writeFiles(project.folder, { "program.ts": program });
  const strict = ["--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "esnext"];
  const libraries = [
    "--moduleResolution",
    "bundler",
    "--lib",
    "es2023,esnext.disposable,dom,dom.asynciterable",
  ];
  npm(project.folder, ["exec", "--", "tsc", ...strict, ...libraries, "program.ts"]);
});
