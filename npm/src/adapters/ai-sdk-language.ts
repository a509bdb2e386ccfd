/** A language model of the AI SDK. */

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { optionsOf } from "./ai-sdk-options.js";
import { messagesOf } from "./ai-sdk-prompt.js";
import {
  type AdapterModel,
  type Generation,
  type GenerationResult,
  newId,
  type TextDelta,
  type ToolCallDelta,
  textToContinue,
} from "./core.js";

/** A loaded model as the AI SDK calls it. */
export class SetunLanguageModel implements LanguageModelV4 {
  /** The version of the specification. */
  readonly specificationVersion = "v4";
  /** Name of the provider. */
  readonly provider = "setun";
  /** Name of the model. */
  readonly modelId: string;
  /** None: the model reads no files. */
  readonly supportedUrls: Record<string, RegExp[]> = {};
  readonly #model: AdapterModel;

  /** @internal Models come from `createSetun`. */
  constructor(modelId: string, model: AdapterModel) {
    this.modelId = modelId;
    this.#model = model;
  }

  /** The whole answer. */
  async doGenerate(call: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const { generation, warnings } = this.#start(call);
    const { text, toolCalls, finishReason, usage } = await generation.result;
    const content: LanguageModelV4Content[] = text === "" ? [] : [{ type: "text", text }];
    for (const { id, function: called } of toolCalls) {
      const { name: toolName, arguments: input } = called;
      if (isWhole(input)) content.push({ type: "tool-call", toolCallId: id, toolName, input });
    }
    const response = { id: newId("setun-"), timestamp: new Date(), modelId: this.modelId };
    return { content, finishReason: finishReasonOf(finishReason), usage: usageOf(usage), response, warnings };
  }

  /** The answer as it is generated. Cancelling the stream ends the generation. */
  async doStream(call: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    const { generation, warnings } = this.#start(call);
    const parts = partsOf(generation, this.modelId, call, warnings);
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      async pull(controller) {
        const { done, value } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        generation.stop();
        await parts.return();
      },
    });
    return { stream };
  }

  #start(call: LanguageModelV4CallOptions): { generation: Generation; warnings: SharedV4Warning[] } {
    const warnings: SharedV4Warning[] = [];
    const messages = messagesOf(call.prompt, warnings);
    const options = optionsOf(call, warnings);
    const text = textToContinue(this.#model, messages);
    if (text === undefined) return { generation: this.#model.chat(messages, options), warnings };
    const details = "the model has none: it continues the text of the prompt";
    warnings.push({ type: "compatibility", feature: "chat template", details });
    return { generation: this.#model.generate(text, options), warnings };
  }
}

/** The parts of a stream. An error of the engine is a part; an aborted signal rejects with its reason. */
async function* partsOf(
  generation: Generation,
  modelId: string,
  { abortSignal, includeRawChunks }: LanguageModelV4CallOptions,
  warnings: SharedV4Warning[],
): AsyncGenerator<LanguageModelV4StreamPart, void, undefined> {
  yield { type: "stream-start", warnings };
  yield { type: "response-metadata", id: newId("setun-"), timestamp: new Date(), modelId };
  const blocks = new Blocks();
  try {
    for await (const delta of generation) {
      if (includeRawChunks) yield { type: "raw", rawValue: delta };
      yield* blocks.add(delta);
    }
    const { finishReason, usage } = await generation.result;
    yield* blocks.end();
    yield { type: "finish", finishReason: finishReasonOf(finishReason), usage: usageOf(usage) };
  } catch (error) {
    if (abortSignal?.aborted) throw error;
    yield { type: "error", error };
    yield { type: "finish", finishReason: { unified: "error", raw: undefined }, usage: usageOf(undefined) };
  }
}

/** The open block of a stream: a text, or the input of a call. */
class Blocks {
  #count = 0;
  #text: string | undefined;
  #call: { index: number; id: string; name: string; input: string } | undefined;

  *add({ text, toolCalls = [] }: TextDelta): Generator<LanguageModelV4StreamPart> {
    if (text !== "") yield* this.#addText(text);
    for (const call of toolCalls) yield* this.#addCall(call);
  }

  *#addText(delta: string): Generator<LanguageModelV4StreamPart> {
    if (this.#text === undefined) {
      yield* this.end();
      this.#text = `text-${this.#count++}`;
      yield { type: "text-start", id: this.#text };
    }
    yield { type: "text-delta", id: this.#text, delta };
  }

  *#addCall({ index, id, name, arguments: delta = "" }: ToolCallDelta): Generator<LanguageModelV4StreamPart> {
    if (this.#call?.index !== index) {
      yield* this.end();
      this.#call = { index, id: id ?? newId("call_"), name: name ?? "", input: "" };
      yield { type: "tool-input-start", id: this.#call.id, toolName: this.#call.name };
    }
    if (delta === "") return;
    this.#call.input += delta;
    yield { type: "tool-input-delta", id: this.#call.id, delta };
  }

  /** Closes the open block. */
  *end(): Generator<LanguageModelV4StreamPart> {
    if (this.#text !== undefined) yield { type: "text-end", id: this.#text };
    this.#text = undefined;
    if (this.#call === undefined) return;
    const { id, name, input } = this.#call;
    this.#call = undefined;
    yield { type: "tool-input-end", id };
    if (isWhole(input)) yield { type: "tool-call", toolCallId: id, toolName: name, input };
  }
}

/** Whether the input of a call has come to its end: that of an answer which was cut off may have not. */
function isWhole(input: string): boolean {
  try {
    JSON.parse(input);
    return true;
  } catch {
    return false;
  }
}

const UNIFIED = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter",
  timeout: "interrupted",
  aborted: "interrupted",
} as const;

function finishReasonOf(raw: GenerationResult["finishReason"]): LanguageModelV4FinishReason {
  return { unified: UNIFIED[raw], raw };
}

function usageOf(usage: GenerationResult["usage"] | undefined): LanguageModelV4Usage {
  const { promptTokens: total, cachedTokens: cacheRead, completionTokens } = usage ?? {};
  const noCache = total === undefined || cacheRead === undefined ? undefined : total - cacheRead;
  return {
    inputTokens: { total, noCache, cacheRead, cacheWrite: undefined },
    outputTokens: { total: completionTokens, text: completionTokens, reasoning: undefined },
  };
}
