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
  "processors",
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
