/** The official client of OpenAI's API: its accumulated streams, its parsers and its loop of tools. */

import assert from "node:assert/strict";
import OpenAI, { BadRequestError, NotFoundError, toFile } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { baseUrl, below, calls, drawObject, drawTools, main, model } from "./common.mjs";
import { chat, conversation, requests, run } from "./common.mjs";

const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "none", maxRetries: 0 });

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

async function completions() {
  for (const request of requests) {
    const expected = run(request);
    const options = { model, prompt: request.prompt, ...request.options };
    const [choice] = (await client.completions.create(options)).choices;
    assert.deepEqual({ text: choice.text, reason: choice.finish_reason }, expected, JSON.stringify(request));
    const chunks = await all(await client.completions.create({ ...options, stream: true }));
    const streamed = chunks.map(({ choices }) => choices[0].text).join("");
    const reason = chunks.at(-1).choices[0].finish_reason;
    assert.deepEqual({ text: streamed, reason }, expected, JSON.stringify(request));
  }
}

async function embeddings() {
  const input = ["A cat", "a dog and été"];
  const numbers = await client.embeddings.create({ model, input, encoding_format: "float" });
  // Without a format it asks for base64 and decodes it.
  const decoded = await client.embeddings.create({ model, input });
  assert.equal(decoded.data.length, 2);
  for (const [index, { embedding }] of decoded.data.entries()) {
    const same = numbers.data[index].embedding.map(Math.fround);
    assert.ok(embedding.length > 1);
    assert.deepEqual(Array.from(embedding, Math.fround), same);
  }
}

async function models() {
  const ids = (await all(client.models.list())).map(({ id }) => id);
  assert.ok(ids.includes(model), ids.join());
  assert.equal((await client.models.retrieve(model)).id, model);
}

async function refusals() {
  const absent = client.completions.create({ model: "absent", prompt: "a" });
  await assert.rejects(absent, (error) => error instanceof NotFoundError && error.code === "model_not_found");
  const negative = client.completions.create({ model, prompt: "a", temperature: -1 });
  await assert.rejects(
    negative,
    (error) => error instanceof BadRequestError && error.param === "temperature",
  );
}

async function batches() {
  const bodies = requests.map(({ prompt, options }) => ({ model, prompt, ...options }));
  const line = (body, key) =>
    JSON.stringify({ custom_id: `r${key}`, method: "POST", url: "/v1/completions", body });
  const content = bodies.map(line).join("\n");
  const file = await client.files.create({
    file: await toFile(Buffer.from(content), "requests.jsonl"),
    purpose: "batch",
  });
  assert.equal(await (await client.files.content(file.id)).text(), content);
  const asked = { input_file_id: file.id, endpoint: "/v1/completions", completion_window: "24h" };
  let batch = await client.batches.create(asked);
  const begun = performance.now();
  while (!["completed", "failed", "cancelled", "expired"].includes(batch.status)) {
    assert.ok(performance.now() - begun < 300_000, JSON.stringify(batch));
    batch = await client.batches.retrieve(batch.id);
  }
  assert.deepEqual(batch.request_counts, { total: bodies.length, completed: bodies.length, failed: 0 });
  const answers = await (await client.files.content(batch.output_file_id)).text();
  const found = new Map(
    answers
      .split("\n")
      .filter((answer) => answer !== "")
      .map((answer) => JSON.parse(answer))
      .map((answer) => [answer.custom_id, answer.response.body.choices[0].text]),
  );
  for (const [key, body] of bodies.entries()) {
    const [choice] = (await client.completions.create(body)).choices;
    assert.equal(found.get(`r${key}`), choice.text, JSON.stringify(body));
  }
  await assert.rejects(client.batches.cancel(batch.id), (error) => error.status === 409);
  assert.ok((await client.files.delete(file.id)).deleted);
}

async function chats() {
  for (const request of requests) {
    const messages = conversation(request);
    const expected = chat(request, messages);
    const options = { model, messages, ...request.options };
    const whole = await client.chat.completions.create(options);
    assert.equal(whole.choices[0].message.content, expected, JSON.stringify(request));
    const stream = client.chat.completions.stream({ ...options, stream_options: { include_usage: true } });
    const accumulated = await stream.finalChatCompletion();
    assert.equal(accumulated.choices[0].message.content, expected, JSON.stringify(request));
    assert.equal(accumulated.choices[0].finish_reason, whole.choices[0].finish_reason);
    assert.equal(accumulated.usage.completion_tokens, whole.usage.completion_tokens);
  }
}

async function responses() {
  for (const request of requests) {
    const expected = chat(request, conversation(request));
    const { max_tokens, ...others } = request.options;
    const options = { model, input: request.prompt, max_output_tokens: max_tokens, ...others };
    assert.equal((await client.responses.create(options)).output_text, expected, JSON.stringify(request));
    const streamed = await client.responses.stream(options).finalResponse();
    assert.equal(streamed.output_text, expected, JSON.stringify(request));
  }
}

/** Each call is parsed, is executed, and gets its result; every other loop is streamed. */
async function tools() {
  for (let done = 0, index = 0; done < calls; done += 3, index += 1) {
    const executed = [];
    const offered = drawTools().map(({ name, parameters }) =>
      zodFunction({ name, parameters, function: (input) => String(executed.push(input)) }),
    );
    const options = {
      model,
      messages: conversation({ prompt: "Rain?" }),
      tools: offered,
      seed: below(2 ** 31),
    };
    const called = {
      ...options,
      temperature: 1,
      max_tokens: 1000,
      tool_choice: "required",
      parallel_tool_calls: false,
    };
    const runner = client.chat.completions.runTools(
      { ...called, stream: index % 2 === 1 },
      { maxChatCompletions: 3 },
    );
    await runner.done();
    const made = runner.messages.flatMap(({ tool_calls }) => tool_calls ?? []);
    // What a schema refuses is told to the model, and is not executed.
    assert.deepEqual([made.length, executed.length], [3, 3], JSON.stringify([options.seed, runner.messages]));
  }
}

async function formats() {
  for (const _ of requests) {
    const [schema, seed] = [drawObject(), below(2 ** 31)];
    const options = {
      model,
      messages: conversation({ prompt: "A cat" }),
      temperature: 1,
      max_tokens: 1000,
      seed,
    };
    const format = { response_format: zodResponseFormat(schema, "answer") };
    const parsed = await client.chat.completions.parse({ ...options, ...format });
    assert.deepEqual(schema.parse(parsed.choices[0].message.parsed), parsed.choices[0].message.parsed);
  }
}

await main([completions, embeddings, models, refusals, batches], [chats, responses, tools, formats]);
