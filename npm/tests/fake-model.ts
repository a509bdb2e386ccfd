/** A model whose answers a test writes, for the mapping of adapters. */

import type {
  AdapterModel,
  ChatMessage,
  GenerateOptions,
  Generation,
  GenerationResult,
  TextDelta,
  ToolCall,
} from "../src/adapters/core.js";
import { checkCount } from "../src/check-options.js";
import { SetunError } from "../src/errors.js";

/** What a generation says: its text token by token, and its calls in pieces of their arguments. */
export interface Answer {
  readonly texts?: readonly string[];
  /** Pieces of reasoning before them. */
  readonly thoughts?: readonly string[];
  readonly calls?: readonly { readonly name: string; readonly pieces: readonly string[] }[];
  readonly finishReason?: GenerationResult["finishReason"];
  /** Whether it ends before its format is complete. */
  readonly unfinished?: boolean;
  readonly error?: Error;
}

/** A request that the fake model has got. */
export interface Asked {
  readonly prompt: unknown;
  readonly options: GenerateOptions & { readonly n?: number };
}

export interface FakeModel extends AdapterModel {
  readonly asked: Asked[];
  stopped: number;
}

/** The text of a conversation. It throws for one that it refuses. */
export type Template = (messages: readonly ChatMessage[], tools: readonly object[]) => string;

/** A message has as many tokens as words, and one more; with a template, its text. Options named `wrong` are refused. */
export function fakeModel(
  answers: readonly Answer[],
  { contextLength = 100, template }: { contextLength?: number; template?: Template } = {},
): FakeModel {
  const left = [...answers];
  const templated = (prompt: unknown, tools: readonly object[] = []) =>
    typeof prompt === "string" ? undefined : template?.(prompt as ChatMessage[], tools);
  const start = (prompt: unknown, options: Asked["options"] = {}) => {
    templated(prompt, options.tools);
    checkNames(options);
    model.asked.push({ prompt, options });
    const answer = left.length > 1 ? left.shift() : left[0];
    return fakeGeneration(answer ?? {}, options.signal, countOf(prompt), () => {
      model.stopped += 1;
    });
  };
  const model: FakeModel = {
    asked: [],
    stopped: 0,
    info: {
      name: "fake",
      contextLength,
      vocabSize: 128,
      hasChatTemplate: true,
      defaults: { temperature: 0.5, topK: 9, topP: 1, minP: 0, repetitionPenalty: 1 },
    } as AdapterModel["info"],
    generate: start,
    chat: start,
    generateMany(prompts, options = {}) {
      const { n = 1 } = options;
      checkCount(n);
      return (typeof prompts === "string" ? [prompts] : prompts).flatMap((prompt) =>
        Array.from({ length: n }, () => start(prompt, options)),
      );
    },
    countTokens: async (prompt, { tools = [] } = {}) =>
      templated(prompt, tools)?.split(/\s+/).length ?? countOf(prompt) + tools.length,
    async embedMany(texts, options = {}) {
      checkNames(options);
      const embeddings = texts.map((text) => Float32Array.of(text.length, 0.5));
      return { embeddings, usage: { promptTokens: countOf(texts) } };
    },
  };
  return model;
}

function checkNames(options: object): void {
  if ("wrong" in options) throw new SetunError("bad-option", "wrong: unknown option");
}

function countOf(prompt: unknown): number {
  if (typeof prompt === "string") return prompt.split(" ").length + 1;
  const texts = (prompt as readonly (string | ChatMessage)[]).map((each) =>
    typeof each === "string" ? each : String(each.content ?? ""),
  );
  return texts.reduce((sum, text) => sum + countOf(text), 0);
}

function fakeGeneration(
  answer: Answer,
  signal: AbortSignal | undefined,
  promptTokens: number,
  onStop: () => void,
): Generation {
  const { texts = [], thoughts = [], calls = [] } = answer;
  const toolCalls = calls.map(
    ({ name, pieces }, index): ToolCall => ({
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: pieces.join("") },
    }),
  );
  const deltas: TextDelta[] = thoughts.map((reasoning) => ({ text: "", reasoning, token: 0, logprob: -0.5 }));
  for (const [token, text] of texts.entries()) {
    const topLogprobs = [{ token, text: `<${text}>`, logprob: -0.5 }];
    deltas.push({ text, token, logprob: -0.5, topLogprobs });
  }
  for (const [index, { name, pieces }] of calls.entries()) {
    for (const [at, piece] of pieces.entries()) {
      const begin = at === 0 ? { id: `call_${index}`, name } : {};
      deltas.push({ text: "", token: 0, logprob: -0.5, toolCalls: [{ index, ...begin, arguments: piece }] });
    }
  }
  const completionTokens = deltas.length;
  const end: GenerationResult["finishReason"] = toolCalls.length > 0 ? "tool_calls" : "stop";
  const { finishReason = end } = answer;
  const usage = {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    cachedTokens: 1,
    reasoningTokens: thoughts.length,
  };
  const check = () => {
    signal?.throwIfAborted();
    if (answer.error !== undefined) throw answer.error;
  };
  return {
    promptLogprobs: Promise.resolve([{ text: "ab", token: 7 }]),
    get result() {
      return (async () => {
        check();
        const timings = { loadSeconds: 0, firstTokenSeconds: 0, tokensPerSecond: 0 };
        const device = { backend: "cpu", level: "scalar", model: "fake", build: "simd128" as const };
        const text = texts.join("");
        const reasoning = thoughts.join("");
        const { unfinished = false } = answer;
        const end = { finishReason, unfinished, usage, toolCalls, timings, seed: 1 };
        return { text, reasoning, tokens: [], ...end, ...device };
      })();
    },
    async text() {
      return texts.join("");
    },
    toReadableStream: () => new ReadableStream(),
    textStream: () => new ReadableStream(),
    stop: onStop,
    async *[Symbol.asyncIterator]() {
      for (const delta of deltas) {
        await new Promise((resolve) => setImmediate(resolve));
        check();
        yield delta;
      }
      check();
    },
  };
}
