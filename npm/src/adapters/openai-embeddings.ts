/** `embeddings.create`, `models.list` and `models.retrieve`. */

import type { AdapterModel } from "./core.js";
import type { Client } from "./openai-client-types.js";
import { refused } from "./openai-errors.js";
import { textsOf } from "./openai-params.js";
import type { EmbeddingParams, EmbeddingResponse } from "./openai-types.js";

/** The embeddings of some texts. @throws {APIError} */
export async function embed(
  model: string,
  loaded: AdapterModel,
  { input, encoding_format = "float", dimensions }: EmbeddingParams,
  signal: AbortSignal,
): Promise<EmbeddingResponse<number[] | string>> {
  if (dimensions !== undefined)
    throw refused("dimensions", "not supported: embeddings have the size of the model");
  const texts = textsOf("input", input);
  signal.throwIfAborted();
  const { embeddings, usage } = await loaded.embedMany(texts);
  signal.throwIfAborted();
  const data = embeddings.map((embedding, index) => ({
    object: "embedding" as const,
    index,
    embedding: encoding_format === "base64" ? base64Of(embedding) : Array.from(embedding),
  }));
  const { promptTokens: prompt_tokens } = usage;
  return { object: "list", model, data, usage: { prompt_tokens, total_tokens: prompt_tokens } };
}

/** The bytes of single-precision numbers, the lowest byte first. */
function base64Of(numbers: Float32Array): string {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  for (const [index, number] of numbers.entries()) view.setFloat32(4 * index, number, true);
  const bytes = Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte));
  return btoa(bytes.join(""));
}

/** The loaded models. `find` refuses other names. */
export function modelObjects(names: readonly string[], find: (name: string) => string): Client["models"] {
  const created = Math.floor(Date.now() / 1000);
  const objectOf = (id: string) => ({ id, object: "model", created, owned_by: "setun" }) as const;
  return {
    list() {
      const data = names.map(objectOf);
      const items = {
        async *[Symbol.asyncIterator]() {
          yield* data;
        },
      };
      const page = { object: "list" as const, data, hasNextPage: () => false, getPaginatedItems: () => data };
      return Object.assign(Promise.resolve({ ...page, ...items }), items);
    },
    retrieve: async (name) => objectOf(find(name)),
  };
}
