export type { BeamOptions } from "../beams.js";
export type { DroppedItems } from "../dropped.js";
export { ERROR_CODES, type ErrorCode, SetunError } from "../errors.js";
export type { Estimate, EstimatedBackend, EstimatedStorage, ModelEstimate } from "../estimate.js";
export type { FilterRule } from "../filter.js";
export type { EstimatedMemory } from "../fits.js";
export type { Form } from "../form.js";
export type { Generation, GenerationResult } from "../generation.js";
export type { ChatMessage, LoadProgress } from "../messages.js";
export type { MemoryByKind, Metrics, Summary } from "../metrics.js";
export type { Model, ModelInfo } from "../model.js";
export type { Models } from "../models.js";
export type { EstimateOptions, GenerateOptions, LoadOptions } from "../options.js";
export { BUILDS, type Build } from "../pick-build.js";
export type { ProcessLogits, Processor, ProcessorFactory, ProcessorModule } from "../processors.js";
export { SAMPLING_STEPS, type SamplingStep } from "../sampling-steps.js";
export type { LoadSource } from "../sources.js";
export type { StoredModel } from "../store/models.js";
export type { TextSession } from "../text-session.js";
export type {
  BeamText,
  Classification,
  ContextStrategy,
  DeviceReport,
  DeviceVerdict,
  SamplingDefaults,
  Score,
  SelfTest,
  TextDelta,
  TokenLogprob,
  Verdict,
} from "../wasm.js";
