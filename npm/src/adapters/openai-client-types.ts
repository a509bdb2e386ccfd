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

/** A method of the official client that is not here: it cannot be called, and rejects with what to use instead. */
export type Absent = (notHere: never) => Promise<never>;

/** What an answer has no equal of. */
export interface AbsentResponse {
  /** Not here, since nothing is sent by HTTP: await the promise. */
  withResponse: Absent;
  /** Not here, since nothing is sent by HTTP: await the promise. */
  asResponse: Absent;
}

/** An answer to come. There is no HTTP response beside it. */
export type AnswerPromise<Answer> = Promise<Answer> & AbsentResponse;

/** Helpers of the official client that are not here. */
export interface AbsentHelpers {
  /** Not here: use `create`, and `JSON.parse` of the text. */
  parse: Absent;
  /** Not here: use `create` with `stream: true`. */
  stream: Absent;
}

/** `create` of an endpoint that streams. */
export interface Create<Params, Answer, Chunk> {
  (params: Streamed<Params>, options?: RequestOptions): AnswerPromise<Stream<Chunk>>;
  (params: Whole<Params>, options?: RequestOptions): AnswerPromise<Answer>;
  (params: Params, options?: RequestOptions): AnswerPromise<Answer | Stream<Chunk>>;
}

/** `create` of embeddings. */
export interface CreateEmbeddings {
  (
    params: EmbeddingParams & { encoding_format: "base64" },
    options?: RequestOptions,
  ): AnswerPromise<EmbeddingResponse<string>>;
  (params: EmbeddingParams, options?: RequestOptions): AnswerPromise<EmbeddingResponse>;
}

/** A page with all loaded models. */
export interface ModelPage extends AsyncIterable<ModelObject> {
  object: "list";
  data: ModelObject[];
  /** Always false. */
  hasNextPage(): boolean;
  /** The models. */
  getPaginatedItems(): ModelObject[];
}

/** The endpoints that a model can answer. */
export interface Client {
  readonly chat: {
    readonly completions: AbsentHelpers & {
      readonly create: Create<ChatParams, ChatCompletion, ChatCompletionChunk>;
    };
  };
  readonly completions: { readonly create: Create<CompletionParams, Completion, Completion> };
  readonly responses: AbsentHelpers & {
    readonly create: Create<ResponseParams, ModelResponse, ResponseEvent>;
  };
  readonly embeddings: { readonly create: CreateEmbeddings };
  readonly models: {
    /** The loaded models, as a page and as an async iterable, which the page is as well. */
    list(): Promise<ModelPage> & AsyncIterable<ModelObject>;
    /** A loaded model. */
    retrieve(model: string): Promise<ModelObject>;
  };
}
