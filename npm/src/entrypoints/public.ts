export { ERROR_CODES, type ErrorCode, SetunError } from "../errors.js";
export type { Generation, GenerationResult, TextDelta } from "../generation.js";
export type { ChatMessage, LoadProgress } from "../messages.js";
export type { Model, ModelInfo } from "../model.js";
export type { GenerateOptions, LoadOptions } from "../options.js";
export { BUILDS, type Build } from "../pick-build.js";
export type { LoadSource } from "../sources.js";
export type { Models, StoredModel } from "../store/models.js";
export type { DeviceReport, DeviceVerdict, SamplingDefaults, SelfTest, Verdict } from "../wasm.js";
