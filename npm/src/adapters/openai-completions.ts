/** `completions.create`. */

import { type AdapterModel, type Generation, type GenerationResult, newId, type TextDelta } from "./core.js";
import { finishReasonOf, tokenText, usageOf } from "./openai-chat.js";
import { refused } from "./openai-errors.js";
import { countOf, formatOf, optionsOf } from "./openai-params.js";
import type { Completion, CompletionLogprobs, CompletionParams } from "./openai-types.js";
import { collected, type Step } from "./steps.js";

const MAPPED = ["best_of", "echo", "logprobs", "model", "n", "prompt", "response_format"];

/** Running generations, `n` for each prompt. */
export interface StartedCompletion {
  readonly generations: readonly Generation[];
  readonly prompts: readonly string[];
  readonly n: number;
}

/** Starts the generations of a request. @throws {APIError} */
export function startCompletion(
  model: AdapterModel,
  params: CompletionParams,
  signal: AbortSignal,
): StartedCompletion {
  const { logprobs, best_of } = params;
  const n = countOf(params.n);
  if (best_of !== undefined && best_of !== null && best_of !== n)
    throw refused("best_of", "not supported: use n, or beamSearch of the model");
  const prompts = promptsOf(params.prompt);
  const given = typeof logprobs === "number";
  const options = {
    ...optionsOf(params, MAPPED),
    ...formatOf(params.response_format),
    ...(given && { logprobs: true, topLogprobs: logprobs, promptLogprobs: params.echo === true }),
    signal,
  };
  const [prompt] = prompts;
  const isOne = n === 1 && prompts.length === 1 && prompt !== undefined;
  const generations = isOne
    ? [model.generate(prompt, options)]
    : model.generateMany(prompts, { ...options, n });
  return { generations, prompts, n };
}

function promptsOf(prompt: CompletionParams["prompt"]): string[] {
  const prompts: readonly unknown[] = Array.isArray(prompt) ? prompt : [prompt];
  if (prompts.length > 0 && prompts.every((each) => typeof each === "string")) return prompts as string[];
  throw refused("prompt", "expected a text or a list of texts; token ids are not supported");
}

/** The answer without a stream. */
export async function completion(
  name: string,
  params: CompletionParams,
  { generations, prompts, n }: StartedCompletion,
): Promise<Completion> {
  const { deltas, results } = await collected(generations);
  const choices: Completion["choices"] = [];
  for (const [index, { text, finishReason }] of results.entries()) {
    const before = params.echo ? (prompts[Math.floor(index / n)] ?? "") : "";
    const echoed = params.echo ? ((await generations[index]?.promptLogprobs) ?? []) : [];
    const tokens = [...echoed, ...(deltas[index] ?? [])];
    const logprobs = typeof params.logprobs === "number" ? logprobsOf(tokens, 0) : null;
    choices.push({ index, text: before + text, finish_reason: endOf(finishReason), logprobs });
  }
  return { ...head(name), choices, usage: usageOf(results, prompts.length) };
}

/** The chunks of a stream. */
export async function* completionChunks(
  name: string,
  params: CompletionParams,
  { generations, prompts, n }: StartedCompletion,
  steps: AsyncIterable<Step>,
): AsyncGenerator<Completion, void, undefined> {
  const beginning = head(name);
  const hasLogprobs = typeof params.logprobs === "number";
  // The API has no finish reason before the last chunk, which the official type does not say.
  const unfinished = null as unknown as "stop";
  const results: GenerationResult[] = [];
  const offsets = generations.map(() => -1);
  for await (const { index, delta, result } of steps) {
    if (offsets[index] === -1) {
      const text = params.echo ? (prompts[Math.floor(index / n)] ?? "") : "";
      const echoed = params.echo && hasLogprobs ? ((await generations[index]?.promptLogprobs) ?? []) : [];
      const logprobs = hasLogprobs && params.echo ? logprobsOf(echoed, 0) : null;
      if (params.echo)
        yield { ...beginning, choices: [{ index, text, finish_reason: unfinished, logprobs }] };
      offsets[index] = text.length;
    }
    if (result === undefined) {
      const logprobs = hasLogprobs ? logprobsOf([delta], offsets[index] ?? 0) : null;
      offsets[index] = (offsets[index] ?? 0) + delta.text.length;
      if (delta.text === "" && logprobs === null) continue;
      yield { ...beginning, choices: [{ index, text: delta.text, finish_reason: unfinished, logprobs }] };
      continue;
    }
    results[index] = result;
    const finish_reason = endOf(result.finishReason);
    yield { ...beginning, choices: [{ index, text: "", finish_reason, logprobs: null }] };
  }
  if (params.stream_options?.include_usage)
    yield { ...beginning, choices: [], usage: usageOf(results, prompts.length) };
}

function head(model: string) {
  const created = Math.floor(Date.now() / 1000);
  return { id: newId("cmpl-"), object: "text_completion", created, model } as const;
}

function endOf(reason: GenerationResult["finishReason"]): "stop" | "length" | "content_filter" {
  const mapped = finishReasonOf(reason);
  return mapped === "tool_calls" ? "stop" : mapped;
}

/** The first token of a text has no log-probability: `null` in the API, which the official type does not say. */
function logprobsOf(tokens: readonly TextDelta[], offset: number): CompletionLogprobs {
  const texts = tokens.map(({ text }) => text);
  let at = offset;
  return {
    tokens: tokens.map(tokenText),
    token_logprobs: tokens.map(({ logprob }) => logprob ?? (null as unknown as number)),
    top_logprobs: tokens.map(({ topLogprobs = [] }) =>
      Object.fromEntries(topLogprobs.map(({ text, logprob }) => [text, logprob])),
    ),
    text_offset: texts.map((text) => {
      at += text.length;
      return at - text.length;
    }),
  };
}
