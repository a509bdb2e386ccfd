/**
 * `setun/ai-sdk`: loaded models as a provider of the Vercel AI SDK, 7 or 6.
 *
 * `docs/adapters.md` lists what each setting becomes, and which are warnings.
 *
 * @module setun/ai-sdk
 */

import {
  type EmbeddingModelV4,
  type LanguageModelV4,
  NoSuchModelError,
  type ProviderV4,
} from "@ai-sdk/provider";
import { languageModel, specificationVersion } from "./ai-sdk-language.js";
import { type AdapterModel, byName, found, type Models } from "./core.js";

export type { SetunProviderOptions } from "./ai-sdk-options.js";
export type { Models } from "./core.js";

/** A provider, which is also a function: `setun()` is the only model, `setun("name")` one of several. */
export interface SetunProvider extends ProviderV4 {
  (modelId?: string): LanguageModelV4;
  languageModel(modelId?: string): LanguageModelV4;
  embeddingModel(modelId?: string): EmbeddingModelV4;
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
  const find = (id: string | undefined, modelType: "languageModel" | "embeddingModel") =>
    found(loaded, id, (modelId, known) => {
      const message = `No such ${modelType}: ${modelId || "none given"}. Loaded: ${known}.`;
      return new NoSuchModelError({ modelId, modelType, message });
    });
  const language = (id?: string) => languageModel(...find(id, "languageModel"));
  return Object.assign((id?: string) => language(id), {
    specificationVersion,
    languageModel: language,
    embeddingModel: (id?: string) => embeddingModel(...find(id, "embeddingModel")),
    imageModel: (modelId: string) => {
      throw new NoSuchModelError({ modelId, modelType: "imageModel" });
    },
  });
}

function embeddingModel(modelId: string, model: AdapterModel): EmbeddingModelV4 {
  return {
    specificationVersion,
    provider: "setun",
    modelId,
    maxEmbeddingsPerCall: undefined,
    supportsParallelCalls: true,
    async doEmbed({ values, dimensions, abortSignal }) {
      abortSignal?.throwIfAborted();
      const { embeddings, usage } = await model.embedMany(values);
      abortSignal?.throwIfAborted();
      return {
        embeddings: embeddings.map((embedding) => Array.from(embedding)),
        usage: { tokens: usage.promptTokens },
        warnings: dimensions === undefined ? [] : [{ type: "unsupported", feature: "dimensions" }],
      };
    },
  };
}
