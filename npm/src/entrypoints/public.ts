export type { DroppedItems } from "../dropped.js";
export { ERROR_CODES, type ErrorCode, SetunError } from "../errors.js";
export type { Estimate, EstimatedBackend, EstimatedStorage, ModelEstimate } from "../estimate.js";
export type { FilterRule } from "../filter.js";
export type { EstimatedMemory } from "../fits.js";
export type { Form } from "../form.js";
export type { Generation, GenerationResult } from "../generation.js";
export type { ChatMessage, LoadProgress } from "../messages.js";
export type { Model, ModelInfo } from "../model.js";
export type { Models } from "../models.js";
export type { EstimateOptions, GenerateOptions, LoadOptions, SamplingStep } from "../options.js";
export { SAMPLING_STEPS } from "../options.js";
export { BUILDS, type Build } from "../pick-build.js";
export type { LoadSource } from "../sources.js";
export type { StoredModel } from "../store/models.js";
export type { TextSession } from "../text-session.js";
export type {
  Classification,
  ContextStrategy,
  DeviceReport,
  DeviceVerdict,
  Metrics,
  SamplingDefaults,
  Score,
  SelfTest,
  TextDelta,
  TokenLogprob,
  Verdict,
} from "../wasm.js";
