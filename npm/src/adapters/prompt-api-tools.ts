/** Tools of a session, and their calls and responses as messages. */

import type { ChatMessage, Tool, ToolCall } from "./core.js";
import {
  type CoreOptions,
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  type MessageContent,
  type PromptTool,
} from "./prompt-api-types.js";

/** Names of the tools of calls without a response, by the ids of the calls. */
export type OpenCalls = Map<string, string>;

/**
 * Whether the application runs the tools, and not the session.
 *
 * @throws {TypeError} for a tool that lacks something.
 */
export function isOpenLoop({ tools = [], expectedOutputs = [] }: CoreOptions): boolean {
  const expectsCalls = [...expectedOutputs].some(({ type }) => type === "tool-call");
  const isOpen = expectsCalls && ![...tools].some((tool) => tool?.execute);
  for (const [index, tool] of [...tools].entries()) {
    const { name, description, inputSchema, execute } = tool ?? {};
    const isRun = isOpen || typeof execute === "function";
    const isSchema = typeof inputSchema === "object" && inputSchema !== null;
    if (name !== undefined && description !== undefined && isSchema && isRun) continue;
    const open = 'or all tools without execute and expectedOutputs with {type: "tool-call"}';
    throw new TypeError(`tools[${index}]: expected {name, description, inputSchema, execute}, ${open}`);
  }
  return isOpen;
}

/** Tools as an option of requests. */
export function toolsOf(tools: readonly PromptTool[]): { tools?: Tool[] } {
  const functions = tools.map(({ name, description, inputSchema: parameters }): Tool => {
    return { type: "function", function: { name, description, parameters } };
  });
  return functions.length > 0 ? { tools: functions } : {};
}

/** Calls of some messages that have no response there. */
export function openCalls(messages: readonly ChatMessage[]): OpenCalls {
  const calls: OpenCalls = new Map();
  for (const { tool_calls = [], tool_call_id } of messages) {
    for (const { id, function: called } of tool_calls as readonly ToolCall[]) calls.set(id, called.name);
    calls.delete(String(tool_call_id));
  }
  return calls;
}

/** A call of the model as the application gets it. */
export function contentOf({ id: callId, function: { name, arguments: given } }: ToolCall): MessageContent {
  const value = new LanguageModelToolCall({ callId, name, arguments: JSON.parse(given) });
  return { type: "tool-call", value };
}

/** A call of the assistant. @throws {TypeError} */
export function callOf(role: string, value: unknown, where: string, calls: OpenCalls): ToolCall {
  if (role !== "assistant" || !(value instanceof LanguageModelToolCall))
    throw new TypeError(`${where}: expected a tool-call of the assistant with a LanguageModelToolCall`);
  const { callId: id, name } = value;
  calls.set(id, name);
  return { id, type: "function", function: { name, arguments: JSON.stringify(value.arguments) } };
}

/** The message of a response of the user. @throws {TypeError | DOMException} also for one to an unknown call. */
export function responseOf(role: string, value: unknown, where: string, calls: OpenCalls): ChatMessage {
  const isError = value instanceof LanguageModelToolError;
  const classes = "LanguageModelToolSuccess or LanguageModelToolError";
  if (role !== "user" || !(isError || value instanceof LanguageModelToolSuccess))
    throw new TypeError(`${where}: expected a tool-response of the user with a ${classes}`);
  const { callId, name } = value;
  const known = Array.from(calls, ([id, tool]) => `${id} of ${tool}`).join(", ") || "none";
  if (calls.get(callId) !== name)
    throw new TypeError(`${where}: no call ${callId} of ${name} waits for a response; waiting: ${known}`);
  calls.delete(callId);
  const content = isError ? JSON.stringify({ error: value.errorMessage }) : textOf(value, where);
  return { role: "tool", tool_call_id: callId, name, content };
}

function textOf({ result }: LanguageModelToolSuccess, where: string): string {
  const texts = result.map(({ type, value }) => {
    if (type === "text") return String(value);
    if (type === "object") return JSON.stringify(value);
    throw new DOMException(`${where}: a result of type ${type} is not supported`, "NotSupportedError");
  });
  return texts.join("\n");
}
