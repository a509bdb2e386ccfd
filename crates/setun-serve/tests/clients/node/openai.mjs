/** The official client of OpenAI's API: its accumulated streams, its parsers and its loop of tools. */

import assert from "node:assert/strict";
import OpenAI, { BadRequestError, NotFoundError, toFile } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { baseUrl, below, calls, drawObject, drawTools, main, model } from "./common.mjs";
import { chat, conversation, requests, run } from "./common.mjs";
import { checkRequests } from "./requests.mjs";

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

/** How often a batch is asked for that never ends. */
const MAX_ROUNDS = 100_000;

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
  let rounds = 0;
  while (!["completed", "failed", "cancelled", "expired"].includes(batch.status)) {
    rounds += 1;
    assert.ok(rounds < MAX_ROUNDS, JSON.stringify(batch));
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

/** A message as chats have it. */
function chatMessage(message) {
  const calls = message.tool_calls?.map(({ id, ...called }) => ({ id, type: "function", function: called }));
  return calls === undefined ? message : { ...message, tool_calls: calls };
}

const isNamed = (choice) => typeof choice === "object";

/** A choice of tools, of which `shape` makes one from a name. */
function toolChoice(choice, shape, among) {
  if (!isNamed(choice)) return choice;
  const named = (choice.among ?? [choice.name]).map((name) => shape(name));
  return choice.among === undefined ? named[0] : among({ mode: "required", tools: named });
}

async function chatsOfOthers() {
  const shape = (name) => ({ type: "function", function: { name } });
  await checkRequests(async (request, seed, stream) => {
    const body = {
      model,
      stream,
      seed,
      ...request.options,
      max_tokens: request.max_tokens,
      messages: request.messages.map(chatMessage),
      tools: request.tools?.map((called) => ({ type: "function", function: called })),
      parallel_tool_calls: request.parallel,
      tool_choice: toolChoice(request.choice, shape, (allowed) => ({
        type: "allowed_tools",
        allowed_tools: allowed,
      })),
      response_format:
        request.format === undefined || request.format === "json"
          ? request.format && { type: "json_object" }
          : { type: "json_schema", json_schema: request.format },
    };
    const given = await client.chat.completions.create(body);
    const answer = { text: "", calls: [], isCut: false };
    for (const { choices } of stream ? await all(given) : [given]) {
      const [{ finish_reason: reason, message, delta = message }] = choices;
      answer.text += delta.content ?? "";
      for (const [place, { index = place, function: called }] of (delta.tool_calls ?? []).entries()) {
        const [name, json] = answer.calls[index] ?? ["", ""];
        answer.calls[index] = [name + (called.name ?? ""), json + (called.arguments ?? "")];
      }
      answer.isCut = reason === "length";
    }
    return answer;
  }, "tools[0].function.parameters");
}

/** A message as items: calls and results are no part of a message here. */
function items({ role, content, tool_calls: calls, tool_call_id: call_id }) {
  const type = role === "assistant" ? "output_text" : "input_text";
  const parts = Array.isArray(content) ? content.map((part) => ({ ...part, type })) : content;
  if (role === "tool") return [{ type: "function_call_output", call_id, output: parts }];
  const said = parts ? [{ type: "message", role, content: parts }] : [];
  const called = (calls ?? []).map(({ id, ...call }) => ({ type: "function_call", call_id: id, ...call }));
  return [...said, ...called];
}

async function responsesOfOthers() {
  const shape = (name) => ({ type: "function", name });
  await checkRequests(async (request, seed, stream) => {
    const body = {
      model,
      seed,
      ...request.options,
      ...request.more?.responses,
      max_output_tokens: request.max_tokens,
      input: request.messages.flatMap(items),
      tools: request.tools && [
        ...(request.others?.responses ?? []),
        ...request.tools.map((called) => ({ type: "function", ...called })),
      ],
      parallel_tool_calls: request.parallel,
      tool_choice: toolChoice(request.choice, shape, (allowed) => ({ type: "allowed_tools", ...allowed })),
      text: request.format && {
        format:
          request.format === "json" ? { type: "json_object" } : { type: "json_schema", ...request.format },
      },
    };
    const streamed = () => client.responses.stream(body).finalResponse();
    const given = stream ? await streamed() : await client.responses.create(body);
    const calls = given.output.filter(({ type }) => type === "function_call");
    return {
      text: given.output_text,
      calls: calls.map((call) => [call.name, call.arguments]),
      isCut: given.status === "incomplete",
    };
  }, "tools[0].parameters");
}

await main([completions, embeddings, models, refusals, batches], [
  chats,
  responses,
  tools,
  formats,
  chatsOfOthers,
  responsesOfOthers,
]);
