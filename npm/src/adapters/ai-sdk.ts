/**
 * `setun/ai-sdk`: loaded models as a provider of the Vercel AI SDK 7.
 *
 * `docs/adapters.md` lists what each setting becomes, and which are warnings.
 *
 * @module setun/ai-sdk
 */

import {
  type EmbeddingModelV4,
  type EmbeddingModelV4CallOptions,
  type EmbeddingModelV4Result,
  type ImageModelV4,
  NoSuchModelError,
  type ProviderV4,
} from "@ai-sdk/provider";
import { SetunLanguageModel } from "./ai-sdk-language.js";
import { type AdapterModel, byName, type Models } from "./core.js";

export type { SetunProviderOptions } from "./ai-sdk-options.js";
export type { Models } from "./core.js";
export { SetunLanguageModel };

/** An embedding model of the AI SDK. */
export class SetunEmbeddingModel implements EmbeddingModelV4 {
  /** The version of the specification. */
  readonly specificationVersion = "v4";
  /** Name of the provider. */
  readonly provider = "setun";
  /** Name of the model. */
  readonly modelId: string;
  /** No limit. */
  readonly maxEmbeddingsPerCall = undefined;
  /** Texts of all calls run in one batch. */
  readonly supportsParallelCalls = true;
  readonly #model: AdapterModel;

  /** @internal Models come from `createSetun`. */
  constructor(modelId: string, model: AdapterModel) {
    this.modelId = modelId;
    this.#model = model;
  }

  /** The embeddings of some texts. */
  async doEmbed(call: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    const { values, dimensions, abortSignal } = call;
    abortSignal?.throwIfAborted();
    const { embeddings, usage } = await this.#model.embedMany(values);
    abortSignal?.throwIfAborted();
    return {
      embeddings: embeddings.map((embedding) => Array.from(embedding)),
      usage: { tokens: usage.promptTokens },
      warnings: dimensions === undefined ? [] : [{ type: "unsupported", feature: "dimensions" }],
    };
  }
}

/** A provider, which is also a function: `setun()` is the only model, `setun("name")` one of several. */
export interface SetunProvider extends ProviderV4 {
  (modelId?: string): SetunLanguageModel;
  languageModel(modelId?: string): SetunLanguageModel;
  embeddingModel(modelId?: string): SetunEmbeddingModel;
}

/**
 * A provider over a loaded model, or over several by name.
 *
 * @throws {NoSuchModelError} from its methods, for a model that is not loaded.
 *
 * @example
 * ```ts
 * const setun = createSetun(await load("hf:owner/name"));
 * const { textStream } = streamText({ model: setun(), prompt: "Why is the sky blue?" });
 * ```
 */
export function createSetun(models: Models): SetunProvider {
  const loaded = byName(models);
  const find = (id: string | undefined, modelType: "languageModel" | "embeddingModel") => {
    const name = id ?? (loaded.size === 1 ? [...loaded.keys()][0] : undefined) ?? "";
    const model = loaded.get(name);
    if (model !== undefined) return [name, model] as const;
    const message = `No such ${modelType}: ${name || "none given"}. Loaded: ${[...loaded.keys()].join(", ")}.`;
    throw new NoSuchModelError({ modelId: name, modelType, message });
  };
  const languageModel = (id?: string) => new SetunLanguageModel(...find(id, "languageModel"));
  return Object.assign((id?: string) => languageModel(id), {
    specificationVersion: "v4" as const,
    languageModel,
    embeddingModel: (id?: string) => new SetunEmbeddingModel(...find(id, "embeddingModel")),
    imageModel: (modelId: string): ImageModelV4 => {
      throw new NoSuchModelError({ modelId, modelType: "imageModel" });
    },
  });
}
