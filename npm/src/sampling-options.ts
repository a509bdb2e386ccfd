/**
 * Options of sampling and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { LogitsProcessorInput } from "./processors.js";

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

/** How the next token is chosen from the logits. */
export interface SamplingOptions {
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
}
