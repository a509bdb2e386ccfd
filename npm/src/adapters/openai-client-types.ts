/** The methods of the official OpenAI client that `setun/openai` has. */

import type { ModelResponse, ResponseEvent, ResponseParams } from "./openai-response-types.js";
import type { Stream } from "./openai-stream.js";
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

/** Options of a request. Those of a connection, such as `headers` and `maxRetries`, have no effect. */
export interface RequestOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal | null | undefined;
  /** Time limit in milliseconds, after which the request fails. */
  readonly timeout?: number | undefined;
  /** Without effect. */
  readonly maxRetries?: number | undefined;
  /** Without effect. */
  readonly headers?: unknown;
}

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
