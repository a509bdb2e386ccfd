/**
 * Options of a generation and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { FilterRule } from "./filter.js";
import type { LogitsProcessorInput } from "./processors.js";
import type { ResponseFormat } from "./response-format.js";
import type { Tool, ToolChoice } from "./tools.js";
import type { ContextStrategy, PromptProgress } from "./wasm.js";

/** The sampling steps in their default order. */
export const SAMPLING_STEPS = [
  "logitBias",
  "repetitionPenalty",
  "frequencyPenalty",
  "presencePenalty",
  "dry",
  "noRepeatNgram",
  "bannedSequences",
  "minTokens",
  "tokens",
  "logitsProcessors",
  "temperature",
  "topNSigma",
  "topK",
  "topP",
  "minP",
  "typicalP",
  "epsilonCutoff",
  "etaCutoff",
  "xtc",
  "mirostat",
] as const;

/** One of {@link SAMPLING_STEPS}. */
export type SamplingStep = (typeof SAMPLING_STEPS)[number];

/** Speculative decoding of a generation. The text does not change. */
export interface SpeculativeOptions {
  /**
   * Speculative decoding: most tokens to propose at once, by prompt lookup or by a draft model. Takes an
   * integer from 0 to 255.
   *
   * Prompt lookup proposes what followed the same tokens earlier in the text. One step verifies all
   * proposals, so the text does not change, sampled or not.
   *
   * @defaultValue 12 with a draft model, else 0
   */
  lookahead?: number;
}

/**
 * Options of {@link Model.generate}, {@link Model.generateMany}, {@link Model.chat} and {@link Session.generate}.
 *
 * An unknown name or a value out of range throws `bad-option` before any work.
 */
export interface GenerateOptions {
  /**
   * Whether a special token that a message spells is read as that token.
   *
   * Otherwise it stays text, and the chat template alone writes special tokens. In a text prompt they are
   * always read.
   *
   * @defaultValue false
   */
  parseSpecial?: boolean;
  /**
   * Whether the last message of a conversation, an assistant's, is continued.
   *
   * The prompt then ends where its content ends. The text that is generated follows the content and does not
   * repeat it.
   *
   * @defaultValue false
   */
  continueFinalMessage?: boolean;
  /**
   * More variables of the chat template, such as `enable_thinking`.
   *
   * They go before the template's other variables; `messages`, `tools` and `add_generation_prompt` are none
   * of them.
   *
   * @defaultValue none
   */
  chatTemplateKwargs?: Record<string, unknown>;
  /**
   * Tokens that were generated before, after which the text goes on; events report what is new. Takes a list
   * of token ids.
   *
   * With equal prompt, options and seed the text is that of a generation without a break. Not with mirostat
   * or `promptLogprobs`, whose state is not in the tokens.
   *
   * @defaultValue none
   */
  generatedTokens?: number[];
  /**
   * Maximum number of tokens to generate. Takes an integer of 1 or more.
   *
   * @defaultValue what fits the context
   */
  maxTokens?: number;
  /**
   * Time limit from the call on, after which the generation ends with what it has. Takes a number of
   * milliseconds from 0 to 1000000000000.
   *
   * It begins with the call, so waiting in the queue counts.
   *
   * @defaultValue none
   */
  timeout?: number;
  /**
   * What is done where a text fills the context, or a prompt does not fit.
   *
   * @defaultValue stop
   */
  contextOverflow?: ContextStrategy;
  /**
   * Stop strings: each ends the text and is not part of it. Takes a list of non-empty strings.
   *
   * @defaultValue none
   */
  stop?: string | string[];
  /**
   * Tokens that end the text, as the model's end tokens do. Takes a list of token ids.
   *
   * Such a token is the last of the generation and not part of the text.
   *
   * @defaultValue none
   */
  stopTokenIds?: number[];
  /**
   * Fewest tokens to generate before an end-of-text token may come. Takes an integer of 0 or more.
   *
   * Stop strings end a text before.
   *
   * @defaultValue 0
   */
  minTokens?: number;
  /**
   * Seed of the sampler. Takes an integer from 0 to 2^64 - 1.
   *
   * The same seed, prompt, options and model give the same text, whatever else runs. The result reports it.
   *
   * @defaultValue random
   */
  seed?: number | bigint;
  /**
   * Which of several generations with this seed; 0 is the first. Takes an integer of 0 or more.
   *
   * They differ in their random numbers alone.
   *
   * @defaultValue 0
   */
  sampleIndex?: number;
  /**
   * Divides the logits: below 1 the distribution is sharper, above 1 flatter; 0 is greedy decoding. Takes 0,
   * or a finite number of 0.000001 or more.
   *
   * @defaultValue the model's, else 0
   */
  temperature?: number;
  /**
   * Top-k sampling: keep the k most probable tokens, and those that tie with the last of them; 0 keeps all.
   * Takes an integer of 0 or more.
   *
   * @defaultValue the model's, else 0
   */
  topK?: number;
  /**
   * Top-p (nucleus) sampling: keep the smallest set of tokens whose probabilities sum to at least p; 1 keeps
   * all. Takes a number from 0 to 1.
   *
   * The most probable token always stays, so 0 is greedy decoding.
   *
   * @defaultValue the model's, else 1
   */
  topP?: number;
  /**
   * Min-p sampling: keep tokens with at least this share of the best token's probability; 0 keeps all. Takes
   * a number from 0 to 1.
   *
   * @defaultValue the model's, else 0
   */
  minP?: number;
  /**
   * DRY: strings at which a repetition ends. Takes a list of non-empty strings.
   *
   * For each it is the token that the string ends in after an "a".
   *
   * @defaultValue line break, `:`, `"`, `*`
   */
  dryBreakers?: string | string[];
  /**
   * The only tokens that may come. Takes a list of token ids.
   *
   * @defaultValue all
   */
  allowedTokens?: number[];
  /**
   * Numbers that are added to the logits of tokens. Takes finite numbers by token id.
   *
   * @defaultValue none
   */
  logitBias?: Record<number, number>;
  /**
   * Tokens that may not come. Takes a list of token ids.
   *
   * @defaultValue none
   */
  bannedTokens?: number[];
  /**
   * Strings that may not come. Takes a list of non-empty strings.
   *
   * Each is banned in the tokens that it has at the start of a text and after a space; the last may not
   * follow the others. A string in other tokens is not found.
   *
   * @defaultValue none
   */
  badWords?: string | string[];
  /**
   * Penalty on tokens that occurred in the prompt or the output: positive logits are divided by it, negative
   * ones multiplied; 1 is none. Takes a finite number above 0.
   *
   * It counts once, however often the token occurred. Keskar et al., "CTRL", 2019.
   *
   * @defaultValue the model's, else 1
   */
  repetitionPenalty?: number;
  /**
   * Subtracted from a token's logit for each time that it was generated. Takes a number from -2 to 2.
   *
   * The prompt does not count. As `OpenAI` and vLLM define it.
   *
   * @defaultValue 0
   */
  frequencyPenalty?: number;
  /**
   * Subtracted once from the logit of every token that was generated. Takes a number from -2 to 2.
   *
   * The prompt does not count. As `OpenAI` and vLLM define it.
   *
   * @defaultValue 0
   */
  presencePenalty?: number;
  /**
   * Length of token sequences that must not occur twice, prompt included; 0 allows all. Takes an integer of 0
   * or more.
   *
   * As `no_repeat_ngram_size` of Hugging Face's `generate`.
   *
   * @defaultValue 0
   */
  noRepeatNgram?: number;
  /**
   * DRY: the penalty on a token that would extend a repetition; 0 is none. Takes a finite number of 0 or
   * more.
   *
   * Where the last *m* tokens occurred before, the token that followed them loses *multiplier · base^(m −
   * allowed length)*, if *m* is at least the allowed length. The longest such *m* counts, up to 50; the
   * penalty is at most 10³⁰. Weidmann, "Don't repeat yourself", 2024.
   *
   * @defaultValue 0
   */
  dryMultiplier?: number;
  /**
   * DRY: the base of the penalty, which grows by this factor with each repeated token. Takes a finite number
   * of 1 or more.
   *
   * @defaultValue 1.75
   */
  dryBase?: number;
  /**
   * DRY: the length of a repetition, in tokens, that costs the multiplier alone. Takes an integer of 0 or
   * more.
   *
   * @defaultValue 2
   */
  dryAllowedLength?: number;
  /**
   * DRY: how many tokens back repetitions are searched for, prompt included; 0 is all. Takes an integer of 0
   * or more.
   *
   * @defaultValue 0
   */
  dryRange?: number;
  /**
   * The last sampling steps in order; all others come before them. Takes a list of distinct sampling steps.
   *
   * The usual order is that of Hugging Face's `generate`.
   *
   * @defaultValue the usual order
   */
  samplingOrder?: SamplingStep[];
  /**
   * Custom logits processors, applied in order.
   *
   * @defaultValue none
   */
  logitsProcessors?: readonly LogitsProcessorInput[];
  /**
   * Dynamic temperature: how far the temperature may move with the entropy of the candidates; 0 keeps it
   * fixed. Takes a finite number of 0 or more.
   *
   * It lies between *max(0, t − r)* and *t + r*, at the share *(H / ln n)^exponent* of the way, where *t* is
   * `temperature`, *r* this range and *H* the entropy of the *n* tokens that are left. At 0 the best token
   * alone is left. As llama.cpp's `dynatemp_range`.
   *
   * @defaultValue 0
   */
  dynamicTemperature?: number;
  /**
   * Dynamic temperature: the exponent of the entropy's share. Takes a finite number above 0.
   *
   * @defaultValue 1
   */
  dynamicTemperatureExponent?: number;
  /**
   * Top-nσ sampling: keep logits within n standard deviations of the best; 0 keeps all. Takes a finite number
   * of 0 or more.
   *
   * The deviation is the root of the mean square over the tokens that are left. Tang et al., "Top-nσ: not all
   * logits are you need", 2024.
   *
   * @defaultValue 0
   */
  topNSigma?: number;
  /**
   * Locally typical sampling: keep the tokens whose information is nearest to the entropy, until their
   * probabilities sum to this; 1 keeps all. Takes a number from 0 to 1.
   *
   * The information of a token is *−ln p*; tokens that tie with the last stay, too. Meister et al., "Locally
   * typical sampling", 2022.
   *
   * @defaultValue 1
   */
  typicalP?: number;
  /**
   * Epsilon sampling: keep tokens of at least this probability; 0 keeps all. Takes a number of 0 or more,
   * below 1.
   *
   * The best token always stays. Hewitt, Manning and Liang, "Truncation sampling as language model
   * desmoothing", 2022.
   *
   * @defaultValue 0
   */
  epsilonCutoff?: number;
  /**
   * Eta sampling: keep tokens of at least the probability min(η, √η · e^−H), where H is the entropy; 0 keeps
   * all. Takes a number of 0 or more, below 1.
   *
   * The best token always stays. From the same paper as `epsilonCutoff`.
   *
   * @defaultValue 0
   */
  etaCutoff?: number;
  /**
   * XTC (exclude top choices): the probability with which all of the most probable tokens but the last are
   * dropped; 0 is never. Takes a number from 0 to 1.
   *
   * It concerns the tokens of at least `xtcThreshold`, where there are two or more. Weidmann, "Exclude top
   * choices", 2024.
   *
   * @defaultValue 0
   */
  xtcProbability?: number;
  /**
   * XTC: the probability from which a token counts as a top choice. Takes a number from 0 to 0.5.
   *
   * @defaultValue 0.1
   */
  xtcThreshold?: number;
  /**
   * Mirostat 2: the target surprise τ, in bits a token; 0 turns it off. Takes a finite number of 0 or more.
   *
   * A token stays while *−log₂ p ≤ μ*, and the best always does. *μ* begins at 2τ; after a token of surprise
   * *S* it becomes *μ − η(S − τ)*. Basu et al., "Mirostat: a neural text decoding algorithm that directly
   * controls perplexity", 2021.
   *
   * @defaultValue 0
   */
  mirostatTau?: number;
  /**
   * Mirostat 2: the learning rate η. Takes a finite number of 0 or more.
   *
   * @defaultValue 0.1
   */
  mirostatEta?: number;
  /**
   * Whether events carry log-probabilities.
   *
   * @defaultValue false
   */
  logprobs?: boolean;
  /**
   * How many of the most probable tokens each event names, with their log-probabilities. Takes an integer of
   * 0 or more.
   *
   * @defaultValue 0
   */
  topLogprobs?: number;
  /**
   * Reports the prompt first, with the log-probabilities of its tokens.
   *
   * The prompt is computed again, even if it is cached.
   *
   * @defaultValue false
   */
  promptLogprobs?: boolean;
  /**
   * Structured output: the constraint that the text follows.
   *
   * @defaultValue none
   */
  responseFormat?: ResponseFormat;
  /**
   * Tools: functions that the model may call, for conversations.
   *
   * Each call that it writes has arguments that are valid under the function's schema.
   *
   * @defaultValue none
   */
  tools?: readonly Tool[];
  /**
   * Tools: whether the model calls them.
   *
   * It decides itself (`"auto"`), is offered none (`"none"`), has to call one (`"required"`) or the named
   * one.
   *
   * @defaultValue auto
   */
  toolChoice?: ToolChoice;
  /**
   * Tools: whether an answer may have several calls. Takes one of true, false.
   *
   * @defaultValue true
   */
  parallelToolCalls?: boolean;
  /**
   * Content filter: replaces words in the text, or ends it before them.
   *
   * It sees the text behind the stop strings, and each text has a state of its own. Tokens, and with them
   * sessions, stay what they are.
   *
   * @defaultValue none
   */
  filter?: FilterRule[];
  /**
   * Requests of a higher priority start first, and are preempted last. Takes an integer from -2147483648 to
   * 2147483647.
   *
   * @defaultValue 0
   */
  priority?: number;
  /** Speculative decoding: tokens that are proposed, and verified in one step. */
  speculative?: SpeculativeOptions;
  /** Called after each step of the prompt, with how much of it is computed. */
  onPromptProgress?: (progress: PromptProgress) => void;
  /** Aborts the generation, as in `fetch`: the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}
