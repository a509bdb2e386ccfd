/** Call options of the AI SDK as options of a generation. */

import type { LanguageModelV4CallOptions, SharedV4Warning } from "@ai-sdk/provider";
import { defined, type GenerateOptions, type Tool, type ToolChoice } from "./core.js";

/** Options of setun for `providerOptions.setun`: those that the AI SDK has no names for, such as `minP`. */
export type SetunProviderOptions = Omit<GenerateOptions, "signal" | "tools" | "toolChoice">;

/** The options of a call. What the model cannot honour is a warning. `providerOptions.setun` comes last. */
export function optionsOf(call: LanguageModelV4CallOptions, warnings: SharedV4Warning[]): GenerateOptions {
  const { maxOutputTokens: maxTokens, temperature, topP, topK, seed, abortSignal: signal, reasoning } = call;
  const reasoningEffort = reasoning === "provider-default" ? undefined : reasoning;
  const presencePenalty = penalty("presencePenalty", call.presencePenalty, warnings);
  const frequencyPenalty = penalty("frequencyPenalty", call.frequencyPenalty, warnings);
  const stop = call.stopSequences?.length ? call.stopSequences : undefined;
  const sampling = { maxTokens, temperature, topP, topK, presencePenalty, frequencyPenalty, seed, stop };
  return {
    ...defined({ ...sampling, reasoningEffort, signal }),
    ...toolsOf(call, warnings),
    ...formatOf(call.responseFormat),
    ...(call.providerOptions?.setun as SetunProviderOptions | undefined),
  };
}

/** A penalty within the range of the engine. */
function penalty(
  feature: string,
  value: number | undefined,
  warnings: SharedV4Warning[],
): number | undefined {
  if (value === undefined || Math.abs(value) <= 2) return value;
  const used = Math.sign(value) * 2;
  const details = `${value} is outside of -2 to 2, ${used} is used`;
  warnings.push({ type: "unsupported", feature, details });
  return used;
}

function formatOf(format: LanguageModelV4CallOptions["responseFormat"]): GenerateOptions {
  if (format?.type !== "json") return {};
  const { schema } = format;
  return { responseFormat: schema === undefined ? { type: "json_object" } : { type: "json_schema", schema } };
}

function toolsOf(
  { tools = [], toolChoice }: LanguageModelV4CallOptions,
  warnings: SharedV4Warning[],
): GenerateOptions {
  const functions: Tool[] = [];
  for (const tool of tools) {
    if (tool.type !== "function") {
      warnings.push({ type: "unsupported", feature: `provider-defined tool ${tool.id}` });
      continue;
    }
    const { name, description, inputSchema: parameters, strict, inputExamples } = tool;
    if (inputExamples?.length)
      warnings.push({ type: "unsupported", feature: "inputExamples", details: `of the tool ${name}` });
    functions.push({ type: "function", function: { name, parameters, ...defined({ description, strict }) } });
  }
  if (functions.length === 0) return {};
  return { tools: functions, ...(toolChoice && { toolChoice: choiceOf(toolChoice) }) };
}

function choiceOf(choice: NonNullable<LanguageModelV4CallOptions["toolChoice"]>): ToolChoice {
  return choice.type === "tool" ? { type: "function", function: { name: choice.toolName } } : choice.type;
}
