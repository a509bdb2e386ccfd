/** Sampling options of a model's own files. */

/** Sampling options that a model's files set. */
export interface SamplingDefaults {
  /** Default of {@link GenerateOptions.temperature}. */
  readonly temperature: number;
  /** Default of {@link GenerateOptions.topK}. */
  readonly topK: number;
  /** Default of {@link GenerateOptions.topP}. */
  readonly topP: number;
  /** Default of {@link GenerateOptions.minP}. */
  readonly minP: number;
  /** Default of {@link GenerateOptions.repetitionPenalty}. */
  readonly repetitionPenalty: number;
}
