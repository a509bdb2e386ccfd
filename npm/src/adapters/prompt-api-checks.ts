/** Arguments of the Prompt API: checked as its interface definition says, and read. */

import type { ChatMessage, GenerateOptions } from "./core.js";
import { callOf, type OpenCalls, responseOf } from "./prompt-api-tools.js";
import type { CoreOptions, Expected, PromptMessage, SamplingMode } from "./prompt-api-types.js";

const TYPES: readonly unknown[] = ["text", "image", "audio", "tool-call", "tool-response"];
const ROLES: readonly unknown[] = ["system", "user", "assistant"];

/**
 * The messages of a prompt, and whether the last one is to be continued. `isFirst`: whether the session is
 * empty. `calls`: those without a response; `undefined` in a session without tools.
 *
 * @throws {TypeError | DOMException} as the specification says.
 */
export function checkPrompt(input: unknown, isFirst: boolean, calls?: OpenCalls) {
  const isList = typeof input === "object" && input !== null && Symbol.iterator in input;
  if (!isList) return { messages: [{ role: "user", content: String(input) }], isPrefixed: false };
  const given = Array.from(input as Iterable<unknown>);
  if (given.length === 0) return { messages: [{ role: "user", content: "" }], isPrefixed: false };
  let isPrefixed = false;
  const messages = given.flatMap((message, index) => {
    const where = `message ${index}`;
    if (typeof message !== "object" || message === null)
      throw new TypeError(`${where}: expected an object, found ${typeof message}`);
    const { role, content, prefix } = message as Partial<PromptMessage>;
    if (!ROLES.includes(role))
      throw new TypeError(`${where}: expected a role of ${ROLES.join(", ")}, found ${role}`);
    if (content === undefined) throw new TypeError(`${where}: there is no content`);
    if (prefix && (role !== "assistant" || index !== given.length - 1))
      throw new DOMException(`${where}: prefix is for a final message of the assistant`, "SyntaxError");
    isPrefixed = Boolean(prefix);
    if (role === "system" && !(isFirst && index === 0))
      throw new TypeError(`${where}: a system message comes first in a session`);
    return messagesOf(String(role), content, where, calls);
  });
  return { messages, isPrefixed };
}

/** Texts are joined without a character between them. Responses to calls are messages of their own, before the text. */
function messagesOf(role: string, content: unknown, where: string, calls?: OpenCalls): ChatMessage[] {
  if (typeof content !== "object" || content === null || !(Symbol.iterator in content))
    return [{ role, content: String(content) }];
  let text = "";
  const tool_calls: object[] = [];
  const responses: ChatMessage[] = [];
  for (const part of content as Iterable<{ type?: unknown; value?: unknown } | null>) {
    const { type, value } = part ?? {};
    if (!TYPES.includes(type)) throw new TypeError(`${where}: unknown type of content: ${type}`);
    if (type === "text" && typeof value !== "string")
      throw new TypeError(`${where}: expected a string as the value of a text`);
    if (type === "text") text += String(value);
    else if (type === "tool-call" && calls) tool_calls.push(callOf(role, value, where, calls));
    else if (type === "tool-response" && calls) responses.push(responseOf(role, value, where, calls));
    else throw new DOMException(`${where}: content of type ${type} is not supported`, "NotSupportedError");
  }
  if (responses.length > 0 && text === "") return responses;
  return [...responses, { role, content: text, ...(tool_calls.length > 0 && { tool_calls }) }];
}

/** Whether texts are all that is expected. @throws {TypeError | RangeError} for an unknown type or language tag. */
function expectsTextsOnly(name: string, expected: readonly Expected[] = []): boolean {
  for (const { type, languages } of expected) {
    if (!TYPES.includes(type)) throw new TypeError(`${name}: unknown type of content: ${type}`);
    if (languages !== undefined) Intl.getCanonicalLocales([...languages]);
  }
  return ![...expected].some(({ type }) => type === "image" || type === "audio");
}

/** The sampling of each mode. */
const SAMPLING = {
  "most-predictable": { temperature: 0 },
  predictable: { temperature: 0.4, topP: 0.9 },
  "slightly-predictable": { temperature: 0.55, topP: 0.9 },
  balanced: { temperature: 0.7, topP: 0.95 },
  "slightly-creative": { temperature: 0.85, topP: 0.95 },
  creative: { temperature: 1, topP: 0.95 },
  "most-creative": { temperature: 1.3, topP: 0.98 },
} satisfies Record<SamplingMode, GenerateOptions>;

/** Whether sessions with these options are possible. @throws {TypeError | RangeError} */
export function checkCore({ samplingMode: mode = "default", ...others }: CoreOptions): boolean {
  const { topK, temperature, ...expected } = others;
  const modes = Object.keys(SAMPLING);
  if (mode !== "default" && !modes.includes(mode))
    throw new TypeError(`samplingMode: expected one of ${modes.join(", ")}, found ${mode}`);
  if (mode !== "default" && (topK !== undefined || temperature !== undefined))
    throw new TypeError("samplingMode: leave out topK and temperature, or the mode");
  const inputs = expectsTextsOnly("expectedInputs", expected.expectedInputs);
  return expectsTextsOnly("expectedOutputs", expected.expectedOutputs) && inputs;
}

/** The mode of a session, `null` where it has options of its own, and its sampling where options say one. */
export function samplingOf({ samplingMode: mode = "default", topK, temperature }: CoreOptions) {
  if (mode !== "default") return [mode, SAMPLING[mode]] as const;
  const own = { ...(topK !== undefined && { topK }), ...(temperature !== undefined && { temperature }) };
  return [Object.keys(own).length === 0 ? "balanced" : null, own] as const;
}
