/** The public types and constants of both entry points. */

export type { EstimatedMemory } from "../backend-fit.js";
export type { BeamSearchOptions } from "../beam-search.js";
export type { CatalogEntry, ChatTemplateFormat, RecommendedSampling } from "../catalog.js";
export type { DroppedItems } from "../dropped-files.js";
export type { CountOptions, Embedding, Embeddings, EmbedOptions } from "../embeddings.js";
export { ERROR_CODES, type ErrorCode, SetunError } from "../errors.js";
export type { Estimate, EstimatedBackend, EstimatedStorage, ModelEstimate } from "../estimate.js";
export type { FilterRule } from "../filter.js";
export type { GenerateOptions, SpeculativeOptions } from "../generate-options.js";
export type { Generation, GenerationResult } from "../generation.js";
export type { Load, LoadFrom } from "../load.js";
export type { LoadPhase, LoadProgress } from "../load-progress.js";
export type { MemoryByKind, Metrics, Summary } from "../metrics.js";
export type { DeviceReportOptions, GenerateManyOptions, Model, ModelInfo } from "../model.js";
export type { Models } from "../models.js";
export type { Backend, EstimateOptions, LoadOptions } from "../options.js";
export type { PenaltyOptions } from "../penalty-options.js";
export { BUILDS, type Build } from "../pick-build.js";
export type {
  LogitsProcessor,
  LogitsProcessorFactory,
  LogitsProcessorInput,
  LogitsProcessorModule,
} from "../processors.js";
export type { ChatMessage, TextPart } from "../protocol.js";
export type {
  ChoiceFormat,
  GrammarFormat,
  JsonObjectFormat,
  JsonSchemaFormat,
  ResponseFormat,
  TextFormat,
} from "../response-format.js";
export type { SamplingDefaults } from "../sampling-defaults.js";
export { SAMPLING_STEPS, type SamplingOptions, type SamplingStep } from "../sampling-options.js";
export type { Session } from "../session.js";
export type { ResumableGeneration } from "../shared/kept-generations.js";
export type { LoadSource } from "../sources.js";
export type { StoredModel } from "../store/models.js";
export type { NamedToolChoice, Tool, ToolCall, ToolCallDelta, ToolChoice } from "../tools.js";
export type {
  BeamText,
  Classification,
  ContextStrategy,
  DeviceReport,
  DeviceVerdict,
  HeadType,
  PromptProgress,
  Score,
  SelfTest,
  SlidingWindow,
  TextDelta,
  TokenLogprob,
  TruncateMiddle,
  Verdict,
} from "../wasm.js";
