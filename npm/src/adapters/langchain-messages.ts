/** Messages of LangChain and of a model's answers, each as the other. */

import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  type StandardMessageStructure,
  type ToolMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import type { ChatMessage, GenerationResult, TextDelta } from "./core.js";

/** With exact optional properties, a message of no named structure has no type for its usage. */
type Answer = AIMessage<StandardMessageStructure>;

/** A piece of it. */
export type AnswerChunk = AIMessageChunk<StandardMessageStructure>;

const ROLES: Readonly<Record<string, ChatMessage["role"]>> = {
  system: "system",
  developer: "system",
  human: "user",
  ai: "assistant",
  tool: "tool",
};

/**
 * The messages of a prompt.
 *
 * @throws {TypeError} for content that a text model cannot read.
 */
export function messagesOf(messages: readonly BaseMessage[]): ChatMessage[] {
  return messages.map((message) => {
    const { type } = message;
    const own = "role" in message && typeof message.role === "string" ? message.role : type;
    const role = ROLES[type] ?? own; // a generic message has its own
    if (AIMessage.isInstance(message) || AIMessageChunk.isInstance(message))
      return { role, content: message.text, ...callsOf(message as AIMessage) };
    if (type !== "tool") return { role, content: textOf(message) };
    const { tool_call_id, name } = message as ToolMessage;
    return { role, content: textOf(message), tool_call_id, ...(name !== undefined && { name }) };
  });
}

function callsOf({ tool_calls = [] }: AIMessage): { tool_calls?: object[] } {
  const calls = tool_calls.map(({ id, name, args }) => ({
    id: id ?? "",
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
  return calls.length > 0 ? { tool_calls: calls } : {};
}

function textOf({ content, type }: BaseMessage): string {
  if (typeof content === "string") return content;
  const texts = content.map((part) => {
    if (part.type === "text" && typeof part.text === "string") return part.text;
    throw new TypeError(`content of a ${type} message: expected text, found ${part.type}`);
  });
  return texts.join("\n");
}

/** The message of a finished answer. */
export function answerOf(result: GenerationResult): Answer {
  const message: Answer = new AIMessage({ content: result.text, ...endOf(result) });
  for (const { id, function: called } of result.toolCalls) {
    const { name, arguments: input } = called;
    const args = parsed(input);
    if (args !== undefined) message.tool_calls?.push({ type: "tool_call", id, name, args });
    else message.invalid_tool_calls?.push({ type: "invalid_tool_call", id, name, args: input });
  }
  return message;
}

/** The input of a call; that of an answer which was cut off may be no JSON. */
function parsed(input: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

/** What a token adds to the message; `undefined` for a token whose text is held back. */
export function chunkOf({ text, toolCalls = [] }: TextDelta): AnswerChunk | undefined {
  if (text === "" && toolCalls.length === 0) return undefined;
  const pieces = toolCalls.map(({ index, id, name, arguments: args = "" }) => ({
    type: "tool_call_chunk" as const,
    index,
    args,
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
  }));
  return new AIMessageChunk({ content: text, tool_call_chunks: pieces });
}

/** What is known at the end of a message. */
export function endOf({ usage, model }: GenerationResult) {
  const { promptTokens, completionTokens, totalTokens, cachedTokens } = usage;
  const usage_metadata: UsageMetadata = {
    input_tokens: promptTokens,
    output_tokens: completionTokens,
    total_tokens: totalTokens,
    input_token_details: { cache_read: cachedTokens },
  };
  return { usage_metadata, response_metadata: { model_provider: "setun", model_name: model } };
}
