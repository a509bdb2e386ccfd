/** Parameters of a request as options of a generation. */

import { type ChatMessage, defined, type GenerateOptions, type Tool, type ToolChoice } from "./core.js";
import { refused } from "./openai-errors.js";
import type { ChatMessageParam, ResponseFormatParam, ToolChoiceParam, ToolParam } from "./openai-types.js";

/** Parameters that change no text. */
const IGNORED: ReadonlySet<string> = new Set([
  "metadata",
  "model",
  "prediction",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "store",
  "stream",
  "stream_options",
  "user",
]);

/** Parameters that would change the text, and that setun has no equal of. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: "there is no audio",
  background: "requests run at once",
  context_management: "there is none",
  conversation: "nothing is stored between requests",
  function_call: "use tool_choice",
  functions: "use tools",
  modalities: "there is text only",
  moderation: "use filter",
  previous_response_id: "nothing is stored between requests: send all of the input",
  prompt: "there are no stored prompts",
  reasoning: "use reasoning_effort",
  suffix: "the model continues texts only",
  verbosity: "the model has no verbosity",
  web_search_options: "there is no web search",
};

/** Values of refused parameters that say what setun does anyway. */
const HARMLESS: Readonly<Record<string, unknown>> = {
  background: false,
  modalities: ["text"],
  verbosity: "medium",
};

/** Other names of options. */
const RENAMED: Readonly<Record<string, string>> = {
  max_completion_tokens: "maxTokens",
  max_output_tokens: "maxTokens",
};

/**
 * Parameters that have no mapping of their own as options, whose names are theirs in camel case. The engine checks them.
 *
 * @throws {APIError} for a parameter that is refused.
 */
export function optionsOf(params: object): GenerateOptions {
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || IGNORED.has(name)) continue;
    if (JSON.stringify(value) === JSON.stringify(HARMLESS[name])) continue;
    if (Object.hasOwn(REFUSED, name)) throw refused(name, `not supported: ${REFUSED[name]}`);
    const option = RENAMED[name] ?? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (Object.hasOwn(options, option)) throw refused(name, "given twice, by another name too");
    options[option] = value;
  }
  return options;
}

/** One text or several. @throws {APIError} */
export function textsOf(name: string, given: unknown): string[] {
  const texts: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (texts.length > 0 && texts.every((text) => typeof text === "string")) return texts as string[];
  throw refused(name, "expected a text or a list of texts; token ids are not supported");
}

/** Messages for the chat template. `developer` is the newer name of `system`. */
export function messagesOf(messages: readonly ChatMessageParam[]): ChatMessage[] {
  if (!Array.isArray(messages)) throw refused("messages", "expected a list of {role, content}");
  return (messages as readonly (ChatMessageParam & Record<string, unknown>)[]).map((message, index) => {
    const at = `messages[${index}]`;
    const { role, content, refusal, audio, function_call, ...fields } = message;
    if (role === "function") throw refused(at, "the role function is not supported: use tool");
    for (const [name, value] of Object.entries({ audio, function_call }))
      if (value !== undefined && value !== null) throw refused(`${at}.${name}`, "not supported");
    const text = content ?? refusal ?? content;
    const read = typeof text === "object" && text !== null ? partsOf(text, at) : text;
    return { ...fields, ...defined({ content: read }), role: role === "developer" ? "system" : role };
  });
}

/** Text parts. Parts of other types are refused. */
export function partsOf(
  parts: readonly { readonly type: string; readonly text?: string }[],
  at: string,
): { type: "text"; text: string }[] {
  const texts = ["text", "input_text", "output_text"];
  return parts.map(({ type, text }, index) => {
    if (texts.includes(type) && typeof text === "string") return { type: "text", text };
    throw refused(`${at}.content[${index}]`, `expected a text, found a part of type ${type}`);
  });
}

/** The response format; none for any text. */
export function formatOf(format: ResponseFormatParam | undefined): GenerateOptions {
  if (format === undefined || format === null || format.type === "text") return {};
  if (format.type !== "json_schema") return { responseFormat: format };
  const { schema = { type: "object" } } = format.json_schema ?? {};
  return { responseFormat: { type: "json_schema", schema } };
}

/** Tools and their choice. Only functions are supported. */
export function toolsOf(
  tools: readonly ToolParam[] | null | undefined,
  choice: ToolChoiceParam | null | undefined,
): GenerateOptions {
  const functions = tools?.map((tool, index): Tool => {
    if (tool.type !== "function" || tool.function === undefined)
      throw refused(`tools[${index}]`, `expected a function, found the type ${tool.type}`);
    const { strict, ...rest } = tool.function;
    return { type: "function", function: { ...rest, ...defined({ strict: strict ?? undefined }) } };
  });
  return defined({ tools: functions, toolChoice: choice ? choiceOf(choice) : undefined });
}

function choiceOf(choice: ToolChoiceParam): ToolChoice {
  if (typeof choice === "string") return choice;
  if (choice.type === "function" && choice.function !== undefined)
    return { type: "function", function: { name: choice.function.name } };
  throw refused("tool_choice", `expected none, auto, required or a function, found the type ${choice.type}`);
}
