/** A language model of the AI SDK. */

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4Warning,
} from "@ai-sdk/provider";
import * as sdk from "@ai-sdk/provider";
import { toStream } from "../readable-stream.js";
import { optionsOf } from "./ai-sdk-options.js";
import { messagesOf } from "./ai-sdk-prompt.js";
import {
  type AdapterModel,
  type Generation,
  type GenerationResult,
  isWhole,
  newId,
  textToContinue,
} from "./core.js";
import { type BlockStep, Blocks } from "./steps.js";

/** That of the AI SDK 7, or of 6 (`v3`), whose package lacks a class. Their models differ in no member that is used here. */
const isV4 = "NoSuchProviderReferenceError" in sdk;
export const specificationVersion = (isV4 ? "v4" : "v3") as "v4";

/** A loaded model as the AI SDK calls it. */
export function languageModel(modelId: string, model: AdapterModel): LanguageModelV4 {
  return {
    specificationVersion,
    provider: "setun",
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { generation, warnings } = start(model, call);
      const result = await generation.result;
      const { text, reasoning, toolCalls, finishReason, usage } = result;
      for (const message of result.warnings ?? []) warnings.push({ type: "other", message });
      const content: LanguageModelV4Content[] = [];
      if (reasoning !== "") content.push({ type: "reasoning", text: reasoning });
      if (text !== "") content.push({ type: "text", text });
      for (const { id, function: called } of toolCalls) {
        const { name: toolName, arguments: input } = called;
        if (isWhole(input)) content.push({ type: "tool-call", toolCallId: id, toolName, input });
      }
      const response = { id: newId("setun-"), timestamp: new Date(), modelId };
      return { content, finishReason: endOf(finishReason), usage: usageOf(usage), response, warnings };
    },
    async doStream(call) {
      const { generation, warnings } = start(model, call);
      const parts = partsOf(generation, modelId, call, warnings);
      return { stream: toStream(parts, () => generation.stop()) };
    },
  };
}

function start(
  model: AdapterModel,
  call: LanguageModelV4CallOptions,
): { generation: Generation; warnings: SharedV4Warning[] } {
  const warnings: SharedV4Warning[] = [];
  const messages = messagesOf(call.prompt);
  const options = optionsOf(call, warnings);
  const text = textToContinue(model, messages);
  if (text === undefined) return { generation: model.chat(messages, options), warnings };
  const details = "the model has none: it continues the text of the prompt";
  warnings.push({ type: "compatibility", feature: "chat template", details });
  return { generation: model.generate(text, options), warnings };
}

/** The parts of a stream. An error of the engine is a part; an aborted signal rejects with its reason. */
async function* partsOf(
  generation: Generation,
  modelId: string,
  { abortSignal, includeRawChunks }: LanguageModelV4CallOptions,
  warnings: SharedV4Warning[],
): AsyncGenerator<LanguageModelV4StreamPart> {
  yield { type: "stream-start", warnings };
  yield { type: "response-metadata", id: newId("setun-"), timestamp: new Date(), modelId };
  const blocks = new Blocks();
  try {
    for await (const delta of generation) {
      if (includeRawChunks) yield { type: "raw", rawValue: delta };
      for (const step of blocks.add(delta)) yield* partsOfStep(step);
    }
    const { finishReason, usage } = await generation.result;
    for (const step of blocks.end()) yield* partsOfStep(step);
    yield { type: "finish", finishReason: endOf(finishReason), usage: usageOf(usage) };
  } catch (error) {
    if (abortSignal?.aborted) throw error;
    yield { type: "error", error };
    yield { type: "finish", finishReason: { unified: "error", raw: undefined }, usage: usageOf(undefined) };
  }
}

function* partsOfStep(step: BlockStep): Generator<LanguageModelV4StreamPart> {
  const { index, call, isReasoning, text: input } = step.block;
  const part = isReasoning ? "reasoning" : "text";
  const id = call?.id ?? `${part}-${index}`;
  const kind = call ? "tool-input" : part;
  if (step.type === "delta") yield { type: `${kind}-delta`, id, delta: step.delta };
  else if (step.type === "end") yield { type: `${kind}-end`, id };
  else if (call) yield { type: "tool-input-start", id, toolName: call.name };
  else yield { type: `${part}-start`, id };
  if (step.type === "end" && call && isWhole(input))
    yield { type: "tool-call", toolCallId: id, toolName: call.name, input };
}

const UNIFIED = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter",
  timeout: isV4 ? "interrupted" : "other",
  aborted: isV4 ? "interrupted" : "other",
} as const;

function endOf(raw: GenerationResult["finishReason"]): LanguageModelV4FinishReason {
  return { unified: UNIFIED[raw], raw };
}

function usageOf(usage: GenerationResult["usage"] | undefined): LanguageModelV4Usage {
  const { promptTokens: total, cachedTokens: cacheRead, completionTokens } = usage ?? {};
  const reasoning = usage?.reasoningTokens;
  const text = usage && usage.completionTokens - usage.reasoningTokens;
  const noCache = total === undefined || cacheRead === undefined ? undefined : total - cacheRead;
  return {
    inputTokens: { total, noCache, cacheRead, cacheWrite: undefined },
    outputTokens: { total: completionTokens, text, reasoning },
  };
}
