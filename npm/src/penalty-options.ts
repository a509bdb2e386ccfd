/**
 * Options that change the logits of single tokens, and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

/** What changes the logits of single tokens: penalties, biases and bans. */
export interface PenaltyOptions {
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
}
