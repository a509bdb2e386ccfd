/** The public options of loading and generating. */

import type { FilterRule } from "./filter.js";
import type { LogitsProcessorInput } from "./processors.js";
import type { LoadProgress } from "./protocol.js";
import type { ResponseFormat } from "./response-format.js";
import type { SamplingStep } from "./sampling-steps.js";
import type { LoadSource } from "./sources.js";
import type { ContextStrategy } from "./wasm.js";

/** Options of `load`. An unknown name or a value out of range rejects with `bad-option` before any work. */
export interface LoadOptions {
  /** Called as bytes arrive, with the total where the server tells it. */
  onProgress?: (progress: LoadProgress) => void;
  /** Aborts loading, as in `fetch`: the promise rejects with `signal.reason`. */
  signal?: AbortSignal;
  /**
   * The device and instruction level that run the model:
   * `"auto"`, `"cpu"` (or its other name `"wasm"`), `"webgpu"`, `"relaxed"`, `"simd128"` or `"scalar"`.
   *
   * `"auto"` takes the GPU if it passes its self-test and is faster, else the CPU.
   * Any other value that cannot run here rejects with `backend-unavailable`; there is no silent fallback.
   *
   * @defaultValue `"auto"`
   */
  backend?: string;
  /**
   * Maximum number of threads, 1 to 64. More than one needs a worker and a cross-origin isolated page.
   *
   * @defaultValue The number of logical processors, at most 8.
   */
  threads?: number;
  /**
   * A draft model for speculative decoding: a smaller model with the same vocabulary, from any source that `load` takes.
   *
   * It proposes tokens for every generation whose `lookahead` is not 0, and changes no text.
   * Its weights and KV cache are added to the model's memory.
   * A draft with another vocabulary rejects with `bad-option`.
   *
   * @defaultValue No draft model.
   */
  draft?: LoadSource;
  /**
   * Maximum size of the KV cache in whole contexts, 1 to 65536. Memory is allocated as it is used.
   *
   * @defaultValue 8
   */
  contexts?: number;
  /**
   * Maximum number of generations in one batch, 1 to 65536. Further generations wait.
   *
   * @defaultValue 64
   */
  streams?: number;
  /**
   * Maximum number of waiting generations, 1 to 65536. One more rejects with `busy`.
   *
   * @defaultValue 1024
   */
  queue?: number;
  /**
   * Whether the model runs in a module worker. In Node, `true` rejects with `bad-option`.
   *
   * @defaultValue `true` in browsers, `false` in Node.
   */
  worker?: boolean;
  /**
   * Whether downloads are stored in the browser, so that the next `load` needs no network.
   *
   * It applies to URLs and Hub names that a worker downloads. Files and bytes are never stored, and Node stores nothing.
   * `storage-full` if the browser has too little room.
   *
   * @defaultValue `true`
   */
  store?: boolean;
  /**
   * Concurrent requests of a stored download, 1 to 16.
   *
   * @defaultValue 4
   */
  connections?: number;
  /** Access token of the Hub. It is sent to `endpoint` only. */
  token?: string;
  /**
   * URL of the Hub that serves names such as `hf:owner/name`.
   *
   * @defaultValue `"https://huggingface.co"`
   */
  endpoint?: string;
}

/** Options of `models.estimate`, with the same meaning as for `load`. */
export type EstimateOptions = Pick<LoadOptions, "signal" | "worker" | "store" | "token" | "endpoint">;

/**
 * Options of {@link Model.generate}, {@link Model.chat}, {@link Model.samples} and {@link Session.generate}.
 *
 * An unknown name or a value out of range throws `bad-option` before any work.
 * Sampling options without a default below default to the model's `generation_config.json`: `model.info.defaults`.
 */
export interface GenerateOptions {
  /**
   * Maximum number of generated tokens, 1 or more.
   *
   * @defaultValue What fits the context; unlimited with a {@link contextStrategy} that makes room.
   */
  maxTokens?: number;
  /** Sampling temperature: 0 for greedy decoding, else 0.000001 or more. */
  temperature?: number;
  /** Keep the `topK` most likely tokens, 0 or more; 0 keeps all. */
  topK?: number;
  /** Nucleus sampling: keep the fewest tokens whose probabilities sum to this, 0 to 1; 1 keeps all. */
  topP?: number;
  /** Keep tokens at least this many times as likely as the most likely one, 0 to 1; 0 keeps all. */
  minP?: number;
  /** Divide positive logits of tokens that occurred, prompt included, and multiply negative ones; above 0, 1 is off. */
  repetitionPenalty?: number;
  /**
   * Range by which the temperature follows the entropy, 0 or more.
   *
   * @defaultValue 0, a fixed temperature.
   */
  dynamicTemperature?: number;
  /**
   * Exponent of the dynamic temperature, above 0.
   *
   * @defaultValue 1
   */
  dynamicTemperatureExponent?: number;
  /**
   * Keep logits within this many standard deviations of the maximum, 0 or more.
   *
   * @defaultValue 0, all tokens.
   */
  topNSigma?: number;
  /**
   * Locally typical sampling: keep the most typical tokens whose probabilities sum to this, 0 to 1.
   *
   * @defaultValue 1, all tokens.
   */
  typicalP?: number;
  /**
   * Drop tokens less likely than this, 0 or more and below 1.
   *
   * @defaultValue 0
   */
  epsilonCutoff?: number;
  /**
   * Drop tokens below a threshold that falls with the entropy (eta sampling), 0 or more and below 1.
   *
   * @defaultValue 0
   */
  etaCutoff?: number;
  /**
   * Probability that XTC ("exclude top choices") drops all but the least likely token above `xtcThreshold`, 0 to 1.
   *
   * @defaultValue 0
   */
  xtcProbability?: number;
  /**
   * Probability from which XTC counts a token as a top choice, 0 to 0.5.
   *
   * @defaultValue 0.1
   */
  xtcThreshold?: number;
  /**
   * Target surprise of Mirostat 2.0 in bits per token, 0 or more.
   *
   * @defaultValue 0, off.
   */
  mirostatTau?: number;
  /**
   * Learning rate of Mirostat 2.0, 0 or more.
   *
   * @defaultValue 0.1
   */
  mirostatEta?: number;
  /**
   * Subtract this from a token's logit once per generated occurrence, -2 to 2. The prompt does not count.
   *
   * @defaultValue 0
   */
  frequencyPenalty?: number;
  /**
   * Subtract this once from the logits of generated tokens, -2 to 2. The prompt does not count.
   *
   * @defaultValue 0
   */
  presencePenalty?: number;
  /**
   * No n-gram of this length occurs twice, prompt included; 0 or more.
   *
   * @defaultValue 0, off.
   */
  noRepeatNgram?: number;
  /**
   * DRY: penalty on tokens that would extend a repetition, prompt included; 0 or more.
   *
   * @defaultValue 0, off.
   */
  dryMultiplier?: number;
  /**
   * DRY: factor by which the penalty grows with each further repeated token, 1 or more.
   *
   * @defaultValue 1.75
   */
  dryBase?: number;
  /**
   * DRY: length of the longest repetition without growth of the penalty, in tokens; 0 or more.
   *
   * @defaultValue 2
   */
  dryAllowedLength?: number;
  /**
   * DRY: number of past tokens that are searched; 0 searches all.
   *
   * @defaultValue 0
   */
  dryRange?: number;
  /**
   * DRY: sequence breakers, strings at which a repetition ends.
   *
   * @defaultValue A line break, `:`, `"` and `*`.
   */
  dryBreakers?: string[];
  /** Numbers added to logits, by token id: `{ 42: -5 }`. */
  logitBias?: Record<number, number>;
  /**
   * Ids of the only tokens that may be generated.
   *
   * @defaultValue All tokens.
   */
  allowedTokens?: number[];
  /** Ids of tokens that are never generated. */
  bannedTokens?: number[];
  /** Strings that are never generated, in the tokens that they have at the start of a text and after a space. */
  ban?: string[];
  /**
   * Minimum number of generated tokens before an end token may come, 0 or more. Stop strings end the text all the same.
   *
   * @defaultValue 0
   */
  minTokens?: number;
  /**
   * The last sampling steps, each at most once. Steps that are left out come before them.
   *
   * @defaultValue The order of {@link SAMPLING_STEPS}, which is that of Hugging Face's `generate`.
   */
  samplingOrder?: SamplingStep[];
  /** Custom logits processors, in order. Where the model runs in a worker they are modules. */
  processors?: readonly LogitsProcessorInput[];
  /**
   * Seed of the sampler, an integer from 0 to 2⁶⁴ − 1; a `bigint` beyond 2⁵³.
   * On a CPU the same seed, prompt, options and model give the same text here and natively.
   *
   * @defaultValue Random; the result reports it.
   */
  seed?: number | bigint;
  /** Stop strings. Each ends the text and is not part of it. */
  stop?: string[];
  /**
   * Content filter: words that are replaced, or that end the text.
   * It runs after the stop strings; no part of a filtered word is ever reported. Token ids are not filtered.
   */
  filter?: FilterRule[];
  /**
   * Structured output: the format that the text follows, such as a JSON schema or a grammar.
   * One that cannot be compiled rejects with `bad-option` before the first token.
   *
   * @defaultValue Any text.
   */
  responseFormat?: ResponseFormat;
  /**
   * Whether each token is reported with its log-probability, before any sampling option.
   *
   * @defaultValue `false`
   */
  logprobs?: boolean;
  /**
   * Number of most likely alternatives reported with each token, 0 or more.
   *
   * @defaultValue 0
   */
  topLogprobs?: number;
  /**
   * Whether the prompt's tokens are reported with their log-probabilities, by {@link Generation.promptLogprobs}.
   * The whole prompt is computed for it, even if a prefix is cached.
   *
   * @defaultValue `false`
   */
  promptLogprobs?: boolean;
  /**
   * Maximum number of speculated tokens per step, 0 to 255. Speculation changes no text.
   *
   * The tokens come from the `draft` model of `load`, or else from prompt lookup:
   * what followed the same n-gram earlier in the text. 12 is a good value.
   *
   * @defaultValue 12 with a draft model, else 0.
   */
  lookahead?: number;
  /**
   * What happens when the text fills the context, or the prompt does not fit.
   *
   * @defaultValue `"stop"`: the text ends with `finishReason: "length"`; a prompt that does not fit rejects with
   *   `context-full`.
   */
  contextStrategy?: ContextStrategy;
  /**
   * Scheduling priority, -2147483648 to 2147483647. A higher one starts first and is preempted last.
   *
   * @defaultValue 0
   */
  priority?: number;
  /**
   * Time limit in milliseconds from the call, 0 or more. The generation then ends with `finishReason: "deadline"`.
   *
   * @defaultValue No limit.
   */
  deadline?: number;
  /** Aborts the generation, as in `fetch`: the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}
