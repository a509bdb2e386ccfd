/** `completions.create`. */

import { type AdapterModel, type Generation, type GenerationResult, newId, type TextDelta } from "./core.js";
import { finishReasonOf, tokenText, usageOf } from "./openai-chat.js";
import { refused } from "./openai-errors.js";
import { formatOf, optionsOf, textsOf } from "./openai-params.js";
import type { Completion, CompletionLogprobs, CompletionParams } from "./openai-types.js";
import { collected, type Step } from "./steps.js";

/** A started request. */
interface Started {
  readonly name: string;
  readonly params: CompletionParams;
  readonly prompts: readonly string[];
  /** As many for each prompt. */
  readonly generations: readonly Generation[];
}

/** Starts a request. @throws {APIError} */
export function startCompletion(
  name: string,
  model: AdapterModel,
  params: CompletionParams,
  signal: AbortSignal,
) {
  const { prompt, logprobs, echo, response_format, n: count, best_of, ...others } = params;
  const n = count ?? 1;
  if (best_of !== undefined && best_of !== null && best_of !== n)
    throw refused("best_of", "not supported: use n, or beamSearch of the model");
  const prompts = textsOf("prompt", prompt);
  const options = {
    ...optionsOf(others),
    ...formatOf(response_format),
    ...(typeof logprobs === "number" && { logprobs: true, topLogprobs: logprobs, promptLogprobs: !!echo }),
    signal,
  };
  const [first = ""] = prompts;
  const isOne = n === 1 && prompts.length === 1;
  const generations = isOne
    ? [model.generate(first, options)]
    : model.generateMany(prompts, { ...options, n });
  const started = { name, params, prompts, generations };
  return {
    generations,
    whole: () => whole(started),
    chunks: (steps: AsyncIterable<Step>) => chunks(started, steps),
  };
}

async function whole(started: Started): Promise<Completion> {
  const { name, params, prompts, generations } = started;
  const { deltas, results } = await collected(generations);
  const choices: Completion["choices"] = [];
  for (const [index, { text, finishReason }] of results.entries()) {
    const echo = await echoOf(started, index);
    const logprobs = logprobsOf(params, [...echo.tokens, ...(deltas[index] ?? [])], 0);
    choices.push({ index, text: echo.text + text, finish_reason: endOf(finishReason), logprobs });
  }
  return { ...head(name), choices, usage: usageOf(results, prompts.length) };
}

async function* chunks(started: Started, steps: AsyncIterable<Step>): AsyncGenerator<Completion> {
  const { name, params, prompts } = started;
  const beginning = head(name);
  // The API has no finish reason before the last chunk, which the official type does not say.
  const unfinished = null as unknown as "stop";
  const chunk = (
    index: number,
    text: string,
    logprobs: CompletionLogprobs | null,
    finish_reason: Ending = unfinished,
  ) => ({ ...beginning, choices: [{ index, text, finish_reason, logprobs }] });
  const results: GenerationResult[] = [];
  const offsets = new Map<number, number>();
  for await (const { index, delta, result } of steps) {
    let offset = offsets.get(index);
    if (offset === undefined) {
      const echo = await echoOf(started, index);
      if (params.echo) yield chunk(index, echo.text, logprobsOf(params, echo.tokens, 0));
      offset = echo.text.length;
    }
    if (result === undefined) {
      const logprobs = logprobsOf(params, [delta], offset);
      if (delta.text !== "" || logprobs !== null) yield chunk(index, delta.text, logprobs);
      offsets.set(index, offset + delta.text.length);
    } else {
      results[index] = result;
      yield chunk(index, "", null, endOf(result.finishReason));
    }
  }
  if (params.stream_options?.include_usage)
    yield { ...beginning, choices: [], usage: usageOf(results, prompts.length) };
}

/** The prompt of a generation, if it is returned, too. */
async function echoOf(
  { params, prompts, generations }: Started,
  index: number,
): Promise<{ text: string; tokens: readonly TextDelta[] }> {
  if (!params.echo) return { text: "", tokens: [] };
  const text = prompts[Math.floor((index * prompts.length) / generations.length)] ?? "";
  const isJudged = typeof params.logprobs === "number";
  return { text, tokens: isJudged ? ((await generations[index]?.promptLogprobs) ?? []) : [] };
}

function head(model: string) {
  const created = Math.floor(Date.now() / 1000);
  return { id: newId("cmpl-"), object: "text_completion", created, model } as const;
}

type Ending = Completion["choices"][number]["finish_reason"];

function endOf(reason: GenerationResult["finishReason"]): Ending {
  const mapped = finishReasonOf(reason);
  return mapped === "tool_calls" ? "stop" : mapped;
}

/** The first token of a text has no log-probability: `null` in the API, which the official type does not say. */
function logprobsOf(
  params: CompletionParams,
  tokens: readonly TextDelta[],
  offset: number,
): CompletionLogprobs | null {
  if (typeof params.logprobs !== "number") return null;
  let at = offset;
  return {
    tokens: tokens.map(tokenText),
    token_logprobs: tokens.map(({ logprob }) => logprob ?? (null as unknown as number)),
    top_logprobs: tokens.map(({ topLogprobs = [] }) =>
      Object.fromEntries(topLogprobs.map(({ text, logprob }) => [text, logprob])),
    ),
    text_offset: tokens.map(({ text }) => {
      at += text.length;
      return at - text.length;
    }),
  };
}
