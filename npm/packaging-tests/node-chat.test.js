/** Conversations with the packed engine, in Node: the embedded model with a chat template. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

const TEMPLATE =
  "{% for m in messages %}{{ m.content }}{{ m.tool_calls | length }}<|end_of_text|>{% endfor %}";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
  const { folder } = embeddedModel(project.folder);
  const files = Object.entries({ ...folder, "chat_template.jinja": TEMPLATE });
  await writeFiles(
    project.folder,
    Object.fromEntries(files.map(([name, bytes]) => [`model/${name}`, bytes])),
  );
});
afterAll(() => project?.remove());

/** Runs a module in the project, with `files` of the model; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const begin = `
    import { readdirSync, readFileSync } from "node:fs";
    import { load } from "setun";
    const names = readdirSync("model");
    const files = Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync("model/" + name))]));
    const model = await load(files);`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
}

describe("a conversation", () => {
  it("keeps special tokens that a message spells as text, unless parseSpecial is given", async () => {
    const { pushed, text, plain, parsed } = await inNode(`
      const messages = [{ role: "user", content: "a<|end_of_text|>", tool_calls: [] }];
      const session = model.session();
      await session.push(messages);
      const text = await model.detokenize(session.tokens);
      const prompt = async (options) => (await model.chat(messages, { maxTokens: 1, ...options }).result).usage.promptTokens;
      const [plain, parsed] = [await prompt({}), await prompt({ parseSpecial: true })];
      console.log(JSON.stringify({ pushed: session.tokens, text, plain, parsed }));
    `);
    expect(pushed.indexOf(1)).toBe(pushed.length - 1);
    expect(text).toContain("a<|end_of_text|>0");
    expect(plain).toBe(pushed.length);
    expect(parsed).toBeLessThan(plain);
  });

  it("continues a last message, and counts tokens as a request has them", async () => {
    const { counts, used, text, refused, kwargs } = await inNode(`
      const user = (content) => ({ role: "user", content, tool_calls: [] });
      const begun = [user("Tell"), { role: "assistant", content: "Once upon a", tool_calls: [] }];
      const options = { temperature: 0, maxTokens: 1, continueFinalMessage: true };
      const counts = [await model.countTokens(begun), await model.countTokens(begun, { continueFinalMessage: true })];
      const { usage, text } = await model.chat(begun, options).result;
      const refused = await model.chat([user("a")], options).text().catch(({ message }) => message);
      const kwargs = await model.chat([user("a")], { chatTemplateKwargs: { messages: [] } }).text().catch(({ code }) => code);
      console.log(JSON.stringify({ counts, used: usage.promptTokens, text, refused, kwargs }));
    `);
    // The calls' number and the end token are left out.
    expect(counts[1]).toBe(counts[0] - 2);
    expect(used).toBe(counts[1]);
    expect(text).toBe(" time");
    expect(refused).toContain("message 0: the last message cannot be continued: its role is not `assistant`");
    expect(kwargs).toBe("bad-option");
  });

  it("takes parts and calls without content, and refuses what the template would not write", async () => {
    const { same, texts, failures, after } = await inNode(`
      const tokens = async (messages) => {
        const session = model.session();
        await session.push(messages);
        return session.tokens;
      };
      const user = (content) => ({ role: "user", content, tool_calls: [] });
      const parts = [{ type: "text", text: "a" }, { type: "text", text: "b" }];
      const same = [await tokens([user("a\\nb")]), await tokens([user(parts)])];
      const call = { role: "assistant", content: null, tool_calls: [{ type: "function" }] };
      const { content, ...absent } = call;
      const texts = [];
      for (const message of [call, absent]) texts.push(await model.detokenize(await tokens([message])));
      const failures = [];
      for (const message of [{ role: "usr", content: "a" }, { role: "user" }, user([{ type: "image_url" }])]) {
        failures.push(await model.chat([user("a"), message]).text().catch(({ code, message }) => \`\${code}: \${message}\`));
      }
      const after = (await model.chat([user("a")], { maxTokens: 1 }).result).finishReason;
      console.log(JSON.stringify({ same, texts, failures, after }));
    `);
    expect(same[0]).toEqual(same[1]);
    expect(texts).toEqual([expect.stringMatching(/^1/), texts[0]]);
    const [role, empty, part] = failures;
    expect(role).toContain(
      "bad-option: message 1: the role `usr` is unknown, expected system, user, assistant",
    );
    expect(empty).toContain("bad-option: message 1: there is no `content`");
    expect(part).toContain("bad-option: message 1: `content` has a part of type `image_url`");
    expect(after).toMatch(/^(length|stop)$/);
  });
});
