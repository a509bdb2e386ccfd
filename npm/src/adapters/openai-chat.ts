/** `chat.completions.create`. */

import type { Generation, GenerationResult, TextDelta, TokenLogprob } from "./core.js";
import { type AdapterModel, defined, newId } from "./core.js";
import { formatOf, messagesOf, optionsOf, toolsOf } from "./openai-params.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatParams,
  FinishReason,
  Logprobs,
  TopLogprob,
  Usage,
} from "./openai-types.js";
import { collected, type Step } from "./steps.js";

/** Starts a request. @throws {APIError} */
export function startChat(name: string, model: AdapterModel, params: ChatParams, signal: AbortSignal) {
  const { messages: given, n: count, response_format, tools, tool_choice, ...others } = params;
  const options = {
    ...optionsOf(others),
    ...formatOf(response_format),
    ...toolsOf(tools, tool_choice),
    signal,
  };
  const messages = messagesOf(given);
  const n = count ?? 1;
  const generations =
    n === 1 ? [model.chat(messages, options)] : model.generateMany([messages], { ...options, n });
  return {
    generations,
    whole: () => whole(name, params, generations),
    chunks: (steps: AsyncIterable<Step>) => chunks(name, params, steps),
  };
}

async function whole(
  name: string,
  params: ChatParams,
  generations: readonly Generation[],
): Promise<ChatCompletion> {
  const { deltas, results } = await collected(generations);
  const choices = results.map(({ text, reasoning, finishReason, toolCalls }, index) => ({
    index,
    finish_reason: finishReasonOf(finishReason),
    logprobs: params.logprobs ? logprobsOf(deltas[index] ?? []) : null,
    message: {
      role: "assistant" as const,
      content: text === "" && toolCalls.length > 0 ? null : text,
      refusal: null,
      ...thoughtsOf(reasoning),
      ...(toolCalls.length > 0 && { tool_calls: [...toolCalls] }),
    },
  }));
  return { ...head(name), object: "chat.completion", choices, usage: usageOf(results) };
}

async function* chunks(
  name: string,
  params: ChatParams,
  steps: AsyncIterable<Step>,
): AsyncGenerator<ChatCompletionChunk> {
  type Choice = ChatCompletionChunk["choices"][number];
  const withUsage = params.stream_options?.include_usage === true;
  const beginning = { ...head(name), object: "chat.completion.chunk" } as const;
  const chunk = (index: number, delta: Choice["delta"], rest: Partial<Choice> = {}) => ({
    ...beginning,
    choices: [{ index, delta, finish_reason: null, logprobs: null, ...rest }],
    ...(withUsage && { usage: null }),
  });
  const begun = new Set<number>();
  const results: GenerationResult[] = [];
  for await (const { index, delta, result } of steps) {
    if (!begun.has(index)) yield chunk(index, { role: "assistant", content: "" });
    begun.add(index);
    if (result !== undefined) {
      results.push(result);
      yield chunk(index, {}, { finish_reason: finishReasonOf(result.finishReason) });
      continue;
    }
    if (delta.reasoning) yield chunk(index, thoughtsOf(delta.reasoning));
    const logprobs = params.logprobs && delta.reasoning === undefined ? logprobsOf([delta]) : null;
    if (delta.text !== "" || logprobs !== null) yield chunk(index, { content: delta.text }, { logprobs });
    const calls = delta.toolCalls?.map(({ index, id, name, arguments: text = "" }) => ({
      index,
      ...(id !== undefined && { id, type: "function" as const }),
      function: { ...defined({ name }), arguments: text },
    }));
    if (calls?.length) yield chunk(index, { tool_calls: calls });
  }
  if (withUsage) yield { ...beginning, choices: [], usage: usageOf(results) };
}

/** The reasoning by both names that clients know; nothing for none. */
function thoughtsOf(reasoning: string) {
  return reasoning === "" ? {} : { reasoning_content: reasoning, reasoning };
}

/** The fields that all chunks of an answer share. */
function head(model: string) {
  return { id: newId("chatcmpl-"), created: Math.floor(Date.now() / 1000), model };
}

/** The API has no name for a time limit or a stopped generation. */
export function finishReasonOf(reason: GenerationResult["finishReason"]): FinishReason {
  return reason === "timeout" ? "length" : reason === "aborted" ? "stop" : reason;
}

/** Tokens of all texts. The prompt of several texts is counted once. */
export function usageOf(results: readonly GenerationResult[], prompts = 1): Usage {
  const firsts = results.filter((_, index) => index % Math.max(1, results.length / prompts) === 0);
  const sum = (all: readonly GenerationResult[], count: keyof GenerationResult["usage"]) =>
    all.reduce((total, { usage }) => total + usage[count], 0);
  const prompt_tokens = sum(firsts, "promptTokens");
  const completion_tokens = sum(results, "completionTokens");
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: sum(firsts, "cachedTokens") },
    completion_tokens_details: { reasoning_tokens: sum(results, "reasoningTokens") },
  };
}

/** Log-probabilities of some tokens; those of reasoning have none here. */
export function logprobsOf(deltas: readonly TextDelta[]): Logprobs {
  const content = deltas
    .filter(({ logprob, reasoning }) => logprob !== undefined && reasoning === undefined)
    .map((delta) => ({
      ...topLogprob({ ...delta, text: tokenText(delta), logprob: delta.logprob ?? 0 }),
      top_logprobs: (delta.topLogprobs ?? []).map(topLogprob),
    }));
  return { content, refusal: null };
}

/** The text of a token: the delta's text may lack the start of a character, or what a stop string holds back. */
export function tokenText({ token, text, topLogprobs }: TextDelta): string {
  return topLogprobs?.find((each) => each.token === token)?.text ?? text;
}

function topLogprob({ text, logprob }: TokenLogprob): TopLogprob {
  const isPart = text.includes("\u{fffd}");
  return { token: text, bytes: isPart ? null : [...new TextEncoder().encode(text)], logprob };
}
