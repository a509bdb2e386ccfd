/**
 * `setun/openai`: loaded models behind an object in the shape of the official OpenAI client.
 *
 * Nothing is sent anywhere. `docs/adapters.md` lists what each parameter becomes, and what is refused.
 *
 * @module setun/openai
 */

import { type AdapterModel, byName, found, type Generation, type Models } from "./core.js";
import { startChat } from "./openai-chat.js";
import type * as client from "./openai-client-types.js";
import { startCompletion } from "./openai-completions.js";
import { embed, modelObjects } from "./openai-embeddings.js";
import { APIError, absent, asApiError } from "./openai-errors.js";
import { startResponse } from "./openai-responses.js";
import { controllerOf, Stream, streamOf } from "./openai-stream.js";
import type { EmbeddingParams } from "./openai-types.js";
import { begun, type Step, stepsOf } from "./steps.js";

export type { Models } from "./core.js";
export type * from "./openai-client-types.js";
export type * from "./openai-response-types.js";
export type * from "./openai-types.js";
export { APIError, Stream };

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
export function createClient(models: Models): client.Client {
  const loaded = byName(models);
  const find: Find = (name) =>
    found(loaded, name, (id, known) => {
      const message = `model: expected one of ${known}, found ${id || "none"}`;
      return new APIError(404, message, { code: "not-found", param: "model" });
    });
  const embeddings = (params: EmbeddingParams, options?: client.RequestOptions) =>
    answered(options, ({ signal }) => embed(...find(params.model), params, signal));
  return {
    chat: { completions: { create: endpoint(find, startChat), ...HELPERS } },
    completions: { create: endpoint(find, startCompletion) },
    responses: { create: endpoint(find, startResponse), ...HELPERS },
    embeddings: { create: embeddings as client.CreateEmbeddings },
    models: modelObjects([...loaded.keys()], (name) => find(name)[0]),
  };
}

const HELPERS = absent({ parse: "use create and JSON.parse", stream: "use create with stream: true" });
const RESPONSE = absent({ withResponse: "nothing is sent by HTTP", asResponse: "nothing is sent by HTTP" });

/** The model of a request. @throws {APIError} */
type Find = (name: string | undefined) => readonly [string, AdapterModel];
type Request<Answer> = (controller: AbortController) => Promise<Answer>;

/** Starts a request: its generations, and what an endpoint makes of them. @throws {APIError} */
type Start<Params, Answer, Chunk> = (
  ...request: [name: string, model: AdapterModel, params: Params, signal: AbortSignal]
) => {
  readonly generations: readonly Generation[];
  whole(): Promise<Answer>;
  chunks(steps: AsyncIterable<Step>): AsyncGenerator<Chunk>;
};

function endpoint<Params extends { model?: string; stream?: boolean | null }, Answer, Chunk>(
  find: Find,
  start: Start<Params, Answer, Chunk>,
): client.Create<Params, Answer, Chunk> {
  const create = (params: Params, options?: client.RequestOptions) =>
    answered(options, async (controller) => {
      const { generations, whole, chunks } = start(...find(params.model), params, controller.signal);
      if (!params.stream) return whole();
      return streamOf(chunks(await begun(stepsOf(generations))), controller);
    });
  return create as client.Create<Params, Answer, Chunk>;
}

/** What a request gives, with the client's errors. */
function answered<Answer>(...request: Parameters<typeof settled<Answer>>): client.AnswerPromise<Answer> {
  return Object.assign(settled(...request), RESPONSE);
}

async function settled<Answer>(options: client.RequestOptions | undefined, answer: Request<Answer>) {
  const controller = controllerOf(options);
  let isStream = false;
  try {
    const given = await answer(controller);
    isStream = given instanceof Stream;
    return given;
  } catch (thrown) {
    throw asApiError(thrown, controller.signal);
  } finally {
    if (!isStream) controller.abort(); // Takes its listeners off the signals that it follows.
  }
}
