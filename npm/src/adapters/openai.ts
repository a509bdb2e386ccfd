/**
 * `setun/openai`: loaded models behind an object in the shape of the official OpenAI client.
 *
 * Nothing is sent anywhere. `docs/adapters.md` lists what each parameter becomes, and what is refused.
 *
 * @module setun/openai
 */

import { type AdapterModel, byName, type Models } from "./core.js";
import { chatChunks, chatCompletion, startChat } from "./openai-chat.js";
import { completion, completionChunks, startCompletion } from "./openai-completions.js";
import { APIError, asApiError, refused } from "./openai-errors.js";
import type { ModelResponse, ResponseEvent, ResponseParams } from "./openai-response-types.js";
import { response, responseEvents, startResponse } from "./openai-responses.js";
import { controllerOf, type RequestOptions, Stream, streamOf } from "./openai-stream.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatParams,
  Completion,
  CompletionParams,
  EmbeddingParams,
  EmbeddingResponse,
  ModelObject,
} from "./openai-types.js";
import { begun, stepsOf } from "./steps.js";

export type { Models } from "./core.js";
export type { ModelResponse, ResponseEvent, ResponseParams } from "./openai-response-types.js";
export type { RequestOptions } from "./openai-stream.js";
export type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatMessageParam,
  ChatParams,
  Completion,
  CompletionParams,
  EmbeddingParams,
  EmbeddingResponse,
  ModelObject,
  ResponseFormatParam,
} from "./openai-types.js";
export { APIError, Stream };

/** A request for a stream. */
type Streamed<Params> = Params & { stream: true };
/** A request for one answer. */
type Whole<Params> = Params & { stream?: false | null };

/** `create` of an endpoint that streams. */
export interface Create<Params, Answer, Chunk> {
  (params: Streamed<Params>, options?: RequestOptions): Promise<Stream<Chunk>>;
  (params: Whole<Params>, options?: RequestOptions): Promise<Answer>;
  (params: Params, options?: RequestOptions): Promise<Answer | Stream<Chunk>>;
}

/** `create` of embeddings. */
export interface CreateEmbeddings {
  (
    params: EmbeddingParams & { encoding_format: "base64" },
    options?: RequestOptions,
  ): Promise<EmbeddingResponse<string>>;
  (params: EmbeddingParams, options?: RequestOptions): Promise<EmbeddingResponse>;
}

/** The endpoints that a model can answer. */
export interface Client {
  readonly chat: {
    readonly completions: { readonly create: Create<ChatParams, ChatCompletion, ChatCompletionChunk> };
  };
  readonly completions: { readonly create: Create<CompletionParams, Completion, Completion> };
  readonly responses: { readonly create: Create<ResponseParams, ModelResponse, ResponseEvent> };
  readonly embeddings: { readonly create: CreateEmbeddings };
  readonly models: {
    /** The loaded models, as a page and as an async iterable. */
    list(): Promise<{ object: "list"; data: ModelObject[] }> & AsyncIterable<ModelObject>;
    /** A loaded model. */
    retrieve(model: string): Promise<ModelObject>;
  };
}

/**
 * A client over a loaded model, or over several by name.
 *
 * Errors are {@link APIError}s with the codes of setun. A parameter that would change the text and is not supported
 * is refused.
 *
 * @example
 * ```ts
 * const client = createClient(await load());
 * const stream = await client.completions.create({ prompt: "Once upon a time", max_tokens: 60, stream: true });
 * for await (const { choices } of stream) output.append(choices[0].text);
 * ```
 */
export function createClient(models: Models): Client {
  const loaded = byName(models);
  const created = Math.floor(Date.now() / 1000);
  const objects = [...loaded.keys()].map(
    (id) => ({ id, object: "model", created, owned_by: "setun" }) as const,
  );
  const find = (name: string | undefined) => found(loaded, name);
  return {
    chat: {
      completions: {
        create: endpoint<ChatParams, ChatCompletion, ChatCompletionChunk>(async (params, controller) => {
          const [name, model] = find(params.model);
          const generations = startChat(model, params, controller.signal);
          if (!params.stream) return chatCompletion(name, params, generations);
          return streamOf(chatChunks(name, params, await begun(stepsOf(generations))), controller);
        }),
      },
    },
    completions: {
      create: endpoint<CompletionParams, Completion, Completion>(async (params, controller) => {
        const [name, model] = find(params.model);
        const started = startCompletion(model, params, controller.signal);
        if (!params.stream) return completion(name, params, started);
        const steps = await begun(stepsOf(started.generations));
        return streamOf(completionChunks(name, params, started, steps), controller);
      }),
    },
    responses: {
      create: endpoint<ResponseParams, ModelResponse, ResponseEvent>(async (params, controller) => {
        const [name, model] = find(params.model);
        const generation = startResponse(model, params, controller.signal);
        if (!params.stream) return response(name, params, stepsOf([generation]));
        return streamOf(responseEvents(name, params, await begun(stepsOf([generation]))), controller);
      }),
    },
    embeddings: {
      create: ((params: EmbeddingParams, options) => embed(find, params, options)) as CreateEmbeddings,
    },
    models: {
      list: () =>
        Object.assign(Promise.resolve({ object: "list" as const, data: [...objects] }), {
          async *[Symbol.asyncIterator]() {
            yield* objects;
          },
        }),
      retrieve: async (name) => {
        const [id] = find(name);
        return { id, object: "model", created, owned_by: "setun" };
      },
    },
  };
}

/** The model of a request. @throws {APIError} */
function found(
  models: ReadonlyMap<string, AdapterModel>,
  name: string | undefined,
): readonly [string, AdapterModel] {
  const names = [...models.keys()];
  const id = name ?? (names.length === 1 ? names[0] : undefined);
  const model = id === undefined ? undefined : models.get(id);
  if (id !== undefined && model !== undefined) return [id, model];
  const message = `model: expected one of ${names.join(", ")}, found ${id ?? "none"}`;
  throw new APIError(404, message, { code: "not-found", param: "model" });
}

/** A `create` whose errors are the client's. */
function endpoint<Params, Answer, Chunk>(
  answer: (params: Params, controller: AbortController) => Promise<Answer | Stream<Chunk>>,
): Create<Params, Answer, Chunk> {
  const create = async (params: Params, options?: RequestOptions) => {
    const controller = controllerOf(options);
    let isStream = false;
    try {
      const given = await answer(params, controller);
      isStream = given instanceof Stream;
      return given;
    } catch (thrown) {
      throw asApiError(thrown, controller.signal);
    } finally {
      if (!isStream) controller.abort(); // Takes its listeners off the signals that it follows.
    }
  };
  return create as Create<Params, Answer, Chunk>;
}

async function embed(
  find: (name: string | undefined) => readonly [string, AdapterModel],
  { model: name, input, encoding_format = "float", dimensions }: EmbeddingParams,
  options?: RequestOptions,
): Promise<EmbeddingResponse | EmbeddingResponse<string>> {
  const { signal } = controllerOf(options);
  try {
    const [id, model] = find(name);
    if (dimensions !== undefined)
      throw refused("dimensions", "not supported: embeddings have the size of the model");
    const texts: readonly unknown[] = Array.isArray(input) ? input : [input];
    if (texts.length === 0 || !texts.every((text) => typeof text === "string"))
      throw refused("input", "expected a text or a list of texts; token ids are not supported");
    signal.throwIfAborted();
    const { embeddings, usage } = await model.embedMany(texts as string[]);
    signal.throwIfAborted();
    const { promptTokens: prompt_tokens } = usage;
    const data = embeddings.map((embedding, index) => ({
      object: "embedding" as const,
      index,
      embedding: encoding_format === "base64" ? base64Of(embedding) : Array.from(embedding),
    }));
    const answer = { object: "list", model: id, data, usage: { prompt_tokens, total_tokens: prompt_tokens } };
    return answer as EmbeddingResponse | EmbeddingResponse<string>;
  } catch (thrown) {
    throw asApiError(thrown, signal);
  }
}

/** The bytes of single-precision numbers, the lowest byte first. */
function base64Of(numbers: Float32Array): string {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  for (const [index, number] of numbers.entries()) view.setFloat32(4 * index, number, true);
  const bytes = Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte));
  return btoa(bytes.join(""));
}
