/** The AI SDK over its provider for APIs like OpenAI's, which validates every answer and every event. */

import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embedMany, generateText, isStepCount, Output, streamText, tool } from "ai";
import { baseUrl, below, calls, drawObject, drawTools, main, model } from "./common.mjs";
import { chat, conversation, requests, run } from "./common.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // those of chats are compared

const provider = createOpenAICompatible({
  name: "setun",
  baseURL: `${baseUrl}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
});

/** The model's token that ends a text. */
const END_OF_TEXT = 2;

/** Options by the SDK's names; it sends its provider's own as they are. */
function settings({
  max_tokens,
  temperature,
  top_p,
  frequency_penalty,
  presence_penalty,
  seed,
  stop,
  ...others
}) {
  const known = {
    temperature,
    topP: top_p,
    frequencyPenalty: frequency_penalty,
    presencePenalty: presence_penalty,
  };
  const stopSequences = stop === undefined ? undefined : [stop];
  return {
    ...known,
    maxOutputTokens: max_tokens,
    seed,
    stopSequences,
    maxRetries: 0,
    providerOptions: { setun: others },
  };
}

/** A text whole and streamed, with its reason, tokens and warnings. */
async function both(options) {
  const whole = await generateText(options);
  const streamed = streamText({ ...options, onError() {} });
  const stream = {
    text: await streamed.text,
    finishReason: await streamed.finishReason,
    usage: await streamed.usage,
    warnings: await streamed.warnings,
  };
  return [whole, stream].map(({ text, finishReason, usage, warnings }) => ({
    text,
    finishReason,
    tokens: usage.outputTokens,
    warnings: warnings ?? [],
  }));
}

/** The SDK writes a conversation as a text, which ends before the user's next turn. */
async function completions() {
  for (const { prompt, options } of requests) {
    const written = { prompt: `user:\n${prompt}\n\nassistant:\n`, options: { ...options, stop: "\nuser:" } };
    const expected = run(written);
    const { stop, ...others } = options;
    const asked = { model: provider.completionModel(model), prompt, ...settings(others) };
    for (const { text, finishReason } of await both(asked)) {
      assert.deepEqual({ text, reason: finishReason }, expected, JSON.stringify(written));
    }
  }
}

async function embeddings() {
  const values = ["A cat", "a dog and été"];
  const { embeddings } = await embedMany({ model: provider.embeddingModel(model), values, maxRetries: 0 });
  const body = JSON.stringify({ model, input: values });
  const answer = await fetch(`${baseUrl}/v1/embeddings`, { method: "POST", body });
  const { data } = await answer.json();
  assert.deepEqual(
    embeddings,
    data.map(({ embedding }) => embedding),
  );
}

async function refusals() {
  const absent = generateText({ model: provider.completionModel("absent"), prompt: "a", maxRetries: 0 });
  await assert.rejects(
    absent,
    (error) => APICallError.isInstance(error) && error.data.error.code === "model_not_found",
  );
}

async function chats() {
  for (const request of requests) {
    const expected = chat(request, conversation(request));
    const [whole, streamed] = await both({
      model: provider(model),
      prompt: request.prompt,
      ...settings(request.options),
    });
    assert.equal(whole.text, expected, JSON.stringify(request));
    assert.deepEqual(streamed, whole);
    assert.deepEqual(whole.warnings, []);
  }
}

/** Each call is parsed, is executed, and gets its result; every other loop is streamed. */
async function tools() {
  for (let done = 0, index = 0; done < calls; done += 3, index += 1) {
    const executed = [];
    const offered = drawTools().map(({ name, parameters }) => {
      const execute = (input) => String(executed.push(parameters.parse(input)));
      return [name, tool({ inputSchema: parameters, execute })];
    });
    const options = {
      model: provider(model),
      prompt: "Rain?",
      tools: Object.fromEntries(offered),
      toolChoice: "required",
    };
    const drawn = {
      ...settings({ seed: below(2 ** 31), temperature: 1, max_tokens: 1000, parallel_tool_calls: false }),
    };
    const asked = { ...options, ...drawn, stopWhen: isStepCount(3) };
    const steps = index % 2 === 1 ? await streamText(asked).steps : (await generateText(asked)).steps;
    const made = steps.flatMap(({ toolCalls }) => toolCalls);
    assert.ok(
      made.every(({ invalid }) => !invalid),
      JSON.stringify([drawn.seed, made]),
    );
    assert.deepEqual(
      [steps.length, made.length, executed.length],
      [3, 3, 3],
      JSON.stringify([drawn.seed, made]),
    );
    assert.deepEqual(
      steps.map(({ finishReason }) => finishReason),
      ["tool-calls", "tool-calls", "tool-calls"],
    );
  }
}

/** A turn is a call, its result and a text, which a bias ends. */
async function turns() {
  for (const isStreamed of [false, true]) {
    const executed = [];
    const [{ name, parameters }] = drawTools();
    const called = tool({
      inputSchema: parameters,
      execute: (input) => String(executed.push(parameters.parse(input))),
    });
    const options = {
      seed: below(2 ** 31),
      temperature: 1,
      max_tokens: 1000,
      min_tokens: 6,
      logit_bias: { [END_OF_TEXT]: 100 },
      parallel_tool_calls: false,
    };
    const asked = {
      model: provider(model),
      prompt: "Rain?",
      tools: { [name]: called },
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "auto" }),
      stopWhen: isStepCount(4),
      ...settings(options),
    };
    const steps = await (isStreamed ? streamText(asked) : await generateText(asked)).steps;
    const reasons = steps.map(({ finishReason }) => finishReason);
    assert.deepEqual(reasons, ["tool-calls", "stop"], JSON.stringify([options.seed, steps]));
    assert.equal(executed.length, 1);
    assert.notEqual(steps[1].text, "");
  }
}

async function formats() {
  for (const _ of requests) {
    const [schema, seed] = [drawObject(), below(2 ** 31)];
    const asked = {
      model: provider(model),
      prompt: "A cat",
      ...settings({ seed, temperature: 1, max_tokens: 1000 }),
    };
    const { output } = await generateText({ ...asked, output: Output.object({ schema }) });
    assert.deepEqual(schema.parse(output), output);
  }
}

await main([completions, embeddings, refusals], [chats, tools, turns, formats]);
