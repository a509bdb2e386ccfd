/**
 * `setun/langchain`: a loaded model as a chat model and as embeddings of LangChain.
 *
 * `docs/adapters.md` lists what each option becomes.
 *
 * @module setun/langchain
 */

import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { Embeddings, type EmbeddingsParams } from "@langchain/core/embeddings";
import type {
  BaseLanguageModelInput,
  StructuredOutputMethodOptions,
} from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BaseChatModelParams,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  assembleStructuredOutputPipeline,
  createContentParser,
  createFunctionCallingParser,
} from "@langchain/core/language_models/structured_output";
import { AIMessageChunk, type BaseMessage, type MessageContent } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import type { AdapterModel, EmbedOptions, GenerateOptions, Generation, Tool, ToolChoice } from "./core.js";
import { defined, textToContinue } from "./core.js";
import { type AnswerChunk, answerOf, chunkOf, endOf, messagesOf } from "./langchain-messages.js";

/** Options of setun that a constructor takes, such as `maxTokens` and `seed`. Unknown ones are refused by the first call. */
export type SetunOptions = Omit<GenerateOptions, "signal" | "tools" | "toolChoice">;

/** Those that a call takes by their own names. */
type Sampling = Pick<GenerateOptions, "maxTokens" | "temperature" | "topP" | "topK" | "seed">;

/** Options of a call. */
export interface ChatSetunCallOptions extends BaseChatModelCallOptions, Sampling {
  /** Tools that the model may call; `bindTools` sets them. */
  tools?: BindToolsInput[];
  /** Format of the answer; `withStructuredOutput` sets it. */
  responseFormat?: GenerateOptions["responseFormat"];
  /** Whether an answer may have several calls. */
  parallelToolCalls?: boolean;
  /** Options of setun for this answer. They come last. */
  options?: SetunOptions;
}

/** A schema of structured output. */
type OutputSchema<Output extends Record<string, unknown>> = Parameters<typeof createContentParser<Output>>[0];

/** What a chat model is made of: also options for all answers. */
export interface ChatSetunFields extends BaseChatModelParams, SetunOptions {
  /** A model of `load`. */
  model: AdapterModel;
  /** More options for all answers. They come after the others. */
  options?: SetunOptions;
}

/**
 * A loaded model as LangChain calls it.
 *
 * @example
 * ```ts
 * const chat = new ChatSetun({ model: await load("hf:owner/name"), maxTokens: 200 });
 * for await (const { text } of await chat.stream("Why is the sky blue?")) output.append(text);
 * ```
 */
export class ChatSetun extends BaseChatModel<ChatSetunCallOptions> {
  readonly #model: AdapterModel;
  readonly #options: SetunOptions;

  constructor({ model, options, ...given }: ChatSetunFields) {
    super(given);
    this.#model = model;
    this.#options = { ...optionsOf(given), ...options };
  }

  /** Name of the class in traces. */
  static override lc_name(): string {
    return "ChatSetun";
  }

  /** Kind of the model in traces. */
  _llmType(): string {
    return "setun";
  }

  /** What the keys of a cache depend on besides a call. */
  override _identifyingParams(): object {
    return { model: this.#model.info.name, ...this.#options };
  }

  /** Tokens of a text, as this model reads it. */
  override getNumTokens(content: MessageContent): Promise<number> {
    const parts = typeof content === "string" ? [content] : content.map((part) => part.text);
    return this.#model.countTokens(parts.filter((part) => typeof part === "string").join("\n"));
  }

  /** The model with tools, of which each input is valid under its schema. */
  override bindTools(
    tools: BindToolsInput[],
    kwargs?: Partial<ChatSetunCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, ChatSetunCallOptions> {
    return this.withConfig({ tools, ...kwargs });
  }

  /** Answers messages; `invoke` calls it. */
  async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const result = await this.#start(messages, options).result;
    const message = answerOf(result);
    const generationInfo = { finish_reason: result.finishReason };
    return { generations: [{ text: result.text, message, generationInfo }] };
  }

  /** Answers messages in chunks; `stream` calls it. */
  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const generation = this.#start(messages, options);
    for await (const delta of generation) {
      const message = chunkOf(delta);
      if (message === undefined) continue;
      const chunk = new ChatGenerationChunk({ text: delta.text, message });
      yield chunk;
      await runManager?.handleLLMNewToken(delta.text, undefined, undefined, undefined, undefined, { chunk });
    }
    const result = await generation.result;
    const generationInfo = { finish_reason: result.finishReason };
    const message: AnswerChunk = new AIMessageChunk({ content: "", ...endOf(result) });
    yield new ChatGenerationChunk({ text: "", message, generationInfo });
  }

  override withStructuredOutput<Output extends Record<string, unknown>>(
    schema: OutputSchema<Output>,
    config?: StructuredOutputMethodOptions<false>,
  ): Runnable<BaseLanguageModelInput, Output>;
  override withStructuredOutput<Output extends Record<string, unknown>>(
    schema: OutputSchema<Output>,
    config?: StructuredOutputMethodOptions<true>,
  ): Runnable<BaseLanguageModelInput, { raw: BaseMessage; parsed: Output }>;
  /** The model with answers that are valid under a schema: as text (`jsonSchema`), or as the input of a tool. */
  override withStructuredOutput<Output extends Record<string, unknown>>(
    schema: OutputSchema<Output>,
    { name = "extract", method = "jsonSchema", includeRaw }: StructuredOutputMethodOptions<boolean> = {},
  ): Runnable<BaseLanguageModelInput, Output | { raw: BaseMessage; parsed: Output }> {
    const parameters = toJsonSchema(schema);
    if (method !== "functionCalling") {
      const model = this.withConfig({ responseFormat: { type: "json_schema", schema: parameters } });
      const parser = createContentParser<Output>(schema);
      return assembleStructuredOutputPipeline(model, parser, includeRaw, "StructuredOutput");
    }
    const tools = [{ type: "function", function: { name, parameters } }];
    const model = this.bindTools(tools, { tool_choice: name, parallelToolCalls: false });
    const parser = createFunctionCallingParser<Output>(schema, name);
    return assembleStructuredOutputPipeline(model, parser, includeRaw, "StructuredOutput");
  }

  #start(messages: BaseMessage[], call: this["ParsedCallOptions"]): Generation {
    const { stop, signal, tools, tool_choice, responseFormat, parallelToolCalls, options } = call;
    const { maxTokens, temperature, topP, topK, seed } = call;
    const offered = tools?.map((tool) => convertToOpenAITool(tool) as Tool);
    const given = {
      ...this.#options,
      ...defined({ signal, responseFormat, parallelToolCalls, maxTokens, temperature, topP, topK, seed }),
      ...(stop?.length && { stop }),
      ...(offered?.length && { tools: offered, ...defined({ toolChoice: choiceOf(tool_choice) }) }),
      ...options,
    };
    const prompt = messagesOf(messages);
    const text = textToContinue(this.#model, prompt);
    return text === undefined ? this.#model.chat(prompt, given) : this.#model.generate(text, given);
  }
}

/** Names of LangChain's own fields; the others are options of the engine, which checks them. */
const FIELDS =
  "cache callbackManager callbacks disableStreaming maxConcurrency maxRetries metadata onFailedAttempt outputVersion tags verbose";
const isOption = ([name]: [string, unknown]) => !FIELDS.split(" ").includes(name);
const optionsOf = (given: object) => Object.fromEntries(Object.entries(given).filter(isOption));

function choiceOf(choice: BaseChatModelCallOptions["tool_choice"]): ToolChoice | undefined {
  if (typeof choice !== "string") return choice as ToolChoice | undefined;
  if (choice === "any" || choice === "required") return "required";
  return choice === "auto" || choice === "none" ? choice : { type: "function", function: { name: choice } };
}

/** What embeddings are made of. */
export interface SetunEmbeddingsFields extends EmbeddingsParams, EmbedOptions {
  /** A model of `load`. */
  model: AdapterModel;
}

/** A loaded model as embeddings of LangChain. */
export class SetunEmbeddings extends Embeddings {
  readonly #model: AdapterModel;
  readonly #options: EmbedOptions;

  constructor({ model, ...given }: SetunEmbeddingsFields) {
    super(given);
    this.#model = model;
    this.#options = optionsOf(given);
  }

  /** A vector for each text. */
  async embedDocuments(texts: string[]): Promise<number[][]> {
    const { embeddings } = await this.#model.embedMany(texts, this.#options);
    return embeddings.map((embedding) => Array.from(embedding));
  }

  /** The vector of one text. */
  async embedQuery(text: string): Promise<number[]> {
    const [vector = []] = await this.embedDocuments([text]);
    return vector;
  }
}
