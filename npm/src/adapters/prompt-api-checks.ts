/** Checks of arguments as the Prompt API's interface definition makes them. */

import type { ChatMessage } from "./core.js";
import type { Expected, MessageContent, MessageType, PromptMessage, PromptTool } from "./prompt-api-types.js";

const TYPES: readonly unknown[] = [
  "text",
  "image",
  "audio",
  "tool-call",
  "tool-response",
] satisfies MessageType[];
const ROLES: readonly unknown[] = ["system", "user", "assistant"] satisfies PromptMessage["role"][];

/** An exception of the platform. */
export function exception(name: string, message: string, cause?: unknown): DOMException {
  const error = new DOMException(message, name);
  return cause === undefined ? error : Object.assign(error, { cause });
}

/** The checked messages of a prompt. */
export interface CheckedPrompt {
  readonly messages: readonly ChatMessage[];
  /** Whether the last message is to be continued. */
  readonly isPrefixed: boolean;
}

/** @throws {TypeError | DOMException} as the specification says. `isFirst`: whether the session is empty. */
export function checkPrompt(input: unknown, isFirst: boolean): CheckedPrompt {
  const isList = typeof input === "object" && input !== null && Symbol.iterator in input;
  if (!isList) return { messages: [{ role: "user", content: String(input) }], isPrefixed: false };
  const given = Array.from(input as Iterable<unknown>);
  if (given.length === 0) return { messages: [{ role: "user", content: "" }], isPrefixed: false };
  let isPrefixed = false;
  const messages = given.map((message, index) => {
    const { role, content, prefix } = checkMessage(message, index);
    if (prefix) {
      if (role !== "assistant" || index !== given.length - 1)
        throw exception("SyntaxError", `message ${index}: prefix is for a final message of the assistant`);
      isPrefixed = true;
    }
    if (role === "system" && !(isFirst && index === 0))
      throw new TypeError(`message ${index}: a system message comes first in a session`);
    return { role, content };
  });
  return { messages, isPrefixed };
}

function checkMessage(message: unknown, index: number): { role: string; content: string; prefix: boolean } {
  if (typeof message !== "object" || message === null)
    throw new TypeError(`message ${index}: expected an object, found ${typeof message}`);
  const { role, content, prefix = false } = message as Partial<PromptMessage>;
  if (!ROLES.includes(role))
    throw new TypeError(`message ${index}: expected a role of ${ROLES.join(", ")}, found ${role}`);
  if (content === undefined) throw new TypeError(`message ${index}: there is no content`);
  return { role: role as string, content: textOf(content, index), prefix: Boolean(prefix) };
}

/** Texts are joined without a character between them. */
function textOf(content: unknown, index: number): string {
  if (typeof content !== "object" || content === null || !(Symbol.iterator in content))
    return String(content);
  const texts = Array.from(content as Iterable<Partial<MessageContent>>, (part) => {
    const { type, value } = part ?? {};
    if (!TYPES.includes(type)) throw new TypeError(`message ${index}: unknown type of content: ${type}`);
    if (type !== "text")
      throw exception("NotSupportedError", `message ${index}: content of type ${type} is not supported`);
    if (typeof value !== "string")
      throw new TypeError(`message ${index}: expected a string as the value of a text`);
    return value;
  });
  return texts.join("");
}

/** Whether texts are all that is expected. @throws {TypeError | RangeError} for an unknown type or language tag. */
export function expectsTextsOnly(name: string, expected: readonly Expected[] | undefined): boolean {
  let textsOnly = true;
  for (const { type, languages } of expected ?? []) {
    if (!TYPES.includes(type)) throw new TypeError(`${name}: unknown type of content: ${type}`);
    if (languages !== undefined) Intl.getCanonicalLocales([...languages]);
    // Calls of tools are no content of messages here: the session answers them.
    if (type === "image" || type === "audio") textsOnly = false;
  }
  return textsOnly;
}

/** @throws {TypeError} for a tool without a name, a description, a schema or a function. */
export function checkTools(tools: readonly PromptTool[] | undefined): readonly PromptTool[] {
  const all = [...(tools ?? [])];
  for (const [index, tool] of all.entries()) {
    const { name, description, inputSchema, execute } = tool ?? {};
    const isSchema = typeof inputSchema === "object" && inputSchema !== null;
    if (name === undefined || description === undefined || !isSchema || typeof execute !== "function")
      throw new TypeError(`tools[${index}]: expected {name, description, inputSchema, execute}`);
  }
  return all;
}

/** A promise that rejects when a signal is aborted. */
export function abortable<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
