/** Messages of LangChain and of a model's answers, each as the other. */

import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  type StandardMessageStructure,
  type ToolMessage,
} from "@langchain/core/messages";
import { type ChatMessage, defined, type GenerationResult, isWhole, type TextDelta } from "./core.js";

/** With exact optional properties, a message of no named structure has no type for its usage. */
type Answer = AIMessage<StandardMessageStructure>;

/** A piece of it. */
export type AnswerChunk = AIMessageChunk<StandardMessageStructure>;

/** Roles with another name. */
const ROLES: Readonly<Record<string, string>> = { developer: "system", human: "user", ai: "assistant" };

/**
 * The messages of a prompt.
 *
 * @throws {TypeError} for content that a text model cannot read.
 */
export function messagesOf(messages: readonly BaseMessage[]): ChatMessage[] {
  return messages.map((message) => {
    const { type } = message;
    const role = ROLES[type] ?? ("role" in message ? String(message.role) : type); // a generic message has its own
    if (type === "ai")
      return { role, content: message.text, ...callsOf(message as AIMessage), ...thoughtsOf(message) };
    if (type !== "tool") return { role, content: textOf(message) };
    const { tool_call_id, name } = message as ToolMessage;
    return { role, content: textOf(message), tool_call_id, ...defined({ name }) };
  });
}

/** What the model thought, where `additional_kwargs` has it. */
function thoughtsOf({ additional_kwargs: { reasoning_content } }: BaseMessage): Partial<ChatMessage> {
  return typeof reasoning_content === "string" ? { reasoning_content } : {};
}

function callsOf({ tool_calls = [] }: AIMessage): { tool_calls?: object[] } {
  const calls = tool_calls.map(({ id = "", name, args }) => {
    return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
  });
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
  const message: Answer = new AIMessage({
    content: result.text,
    ...kwargsOf(result.reasoning),
    ...endOf(result),
  });
  for (const { id, function: called } of result.toolCalls) {
    const { name, arguments: args } = called;
    if (isWhole(args)) message.tool_calls?.push({ type: "tool_call", id, name, args: JSON.parse(args) });
    else message.invalid_tool_calls?.push({ type: "invalid_tool_call", id, name, args });
  }
  return message;
}

/** What a token adds to the message; `undefined` for a token whose text is held back. */
export function chunkOf({ text, reasoning = "", toolCalls = [] }: TextDelta): AnswerChunk | undefined {
  if (text === "" && reasoning === "" && toolCalls.length === 0) return undefined;
  const pieces = toolCalls.map(({ index, id, name, arguments: args = "" }) => {
    return { type: "tool_call_chunk" as const, index, args, ...defined({ id, name }) };
  });
  return new AIMessageChunk({ content: text, ...kwargsOf(reasoning), tool_call_chunks: pieces });
}

function kwargsOf(reasoning_content: string) {
  return reasoning_content === "" ? {} : { additional_kwargs: { reasoning_content } };
}

/** What is known at the end of a message. */
export function endOf({ usage, model }: GenerationResult) {
  const { promptTokens: input_tokens, completionTokens: output_tokens, totalTokens: total_tokens } = usage;
  const input_token_details = { cache_read: usage.cachedTokens };
  const output_token_details = { reasoning: usage.reasoningTokens };
  const tokens = { input_tokens, output_tokens, total_tokens };
  const usage_metadata = { ...tokens, input_token_details, output_token_details };
  return { usage_metadata, response_metadata: { model_provider: "setun", model_name: model } };
}
