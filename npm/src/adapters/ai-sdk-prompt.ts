/** Prompts of the AI SDK as messages of a chat template. */

import { type LanguageModelV4Prompt, UnsupportedFunctionalityError } from "@ai-sdk/provider";
import type { ChatMessage } from "./core.js";

type Message<Role extends string> = Extract<LanguageModelV4Prompt[number], { role: Role }>;
type ToolResult = Extract<Message<"tool">["content"][number], { type: "tool-result" }>;

/**
 * The messages of a prompt. The chat template keeps or drops their reasoning.
 *
 * @throws {UnsupportedFunctionalityError} for content that a text model cannot read.
 */
export function messagesOf(prompt: LanguageModelV4Prompt): ChatMessage[] {
  return prompt.flatMap((message): ChatMessage[] => {
    const { role } = message;
    if (role === "system") return [{ role, content: message.content }];
    if (role === "user") return [{ role, content: userContent(message) }];
    return role === "assistant" ? [assistantMessage(message)] : toolMessages(message);
  });
}

/** One text stays a string; several are parts. */
function userContent({ content }: Message<"user">): ChatMessage["content"] {
  const parts = content.map((part) => {
    if (part.type === "text") return { type: "text" as const, text: part.text };
    return unsupported(`file part of type ${part.mediaType}`);
  });
  return parts.length === 1 ? parts[0]?.text : parts;
}

function assistantMessage({ content }: Message<"assistant">): ChatMessage {
  let [text, reasoning] = ["", ""];
  const calls: object[] = [];
  for (const part of content) {
    if (part.type === "text") text += part.text;
    else if (part.type === "tool-call") {
      const { toolCallId: id, toolName: name, input } = part;
      const given = typeof input === "string" ? input : JSON.stringify(input ?? {});
      calls.push({ id, type: "function", function: { name, arguments: given } });
    } else if (part.type === "reasoning") reasoning += part.text;
    else unsupported(`${part.type} part of an assistant's message`);
  }
  const thought = reasoning !== "" && { reasoning_content: reasoning };
  return { role: "assistant", content: text, ...thought, ...(calls.length > 0 && { tool_calls: calls }) };
}

/** One message for each result. Approvals come with their results. */
function toolMessages({ content }: Message<"tool">): ChatMessage[] {
  const results = content.filter((part) => part.type === "tool-result");
  return results.map(({ toolCallId: tool_call_id, toolName: name, output }) => {
    return { role: "tool", tool_call_id, name, content: outputText(output) };
  });
}

function outputText(output: ToolResult["output"]): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return output.reason ?? "The execution of the tool was denied.";
    case "content":
      return output.value
        .map((part) =>
          part.type === "text" ? part.text : unsupported(`${part.type} part of a tool's result`),
        )
        .join("\n");
  }
}

function unsupported(functionality: string): never {
  throw new UnsupportedFunctionalityError({ functionality });
}
