/** Conversations as prompts: by the model's chat template, or for models that have none. */

import type { GenerateOptions, Generation, Model } from "setun";
import type { Format, Message } from "./thread.js";

/** A format that is decided. */
export type UsedFormat = Exclude<Format, "auto">;

/** What a prompt is made of. */
export interface Conversation {
  readonly system: string;
  readonly messages: readonly Pick<Message, "role" | "content" | "reasoning">[];
  /** How the answer begins; the model continues it. */
  readonly begun: string;
}

const SPEAKERS = { user: "User", assistant: "Assistant" } as const;

/** The format that is used: the wished one, or the default of the model. */
export function usedFormat(wish: Format, hasChatTemplate: boolean): UsedFormat {
  if (wish === "auto") return hasChatTemplate ? "template" : "together";
  if (wish === "template" && !hasChatTemplate) return "together";
  return wish;
}

/** Starts the answer to a conversation. */
export function startAnswer(
  model: Model,
  format: UsedFormat,
  conversation: Conversation,
  options: GenerateOptions,
): Generation {
  if (format === "template") {
    const continueFinalMessage = conversation.begun !== "";
    return model.chat(chatMessages(conversation), { ...options, continueFinalMessage });
  }
  if (format === "together") return model.generate(oneText(conversation), options);
  return model.generate(transcript(conversation), { ...options, stop: [`\n${SPEAKERS.user}:`] });
}

/** Messages for a chat template. The last one is to be continued if the answer has begun. */
export function chatMessages({ system, messages, begun }: Conversation) {
  const first = system.trim() === "" ? [] : [{ role: "system" as const, content: system }];
  const last = begun === "" ? [] : [{ role: "assistant" as const, content: begun }];
  const said = messages.map(({ role, content, reasoning }) => {
    return { role, content, ...(reasoning && { reasoning_content: reasoning }) };
  });
  return [...first, ...said, ...last];
}

/** The messages as one text that the model continues; you and the model write it in turns. */
export function oneText({ messages, begun }: Conversation): string {
  let text = "";
  for (const { content } of messages) {
    const isApart = text === "" || /\s$/.test(text) || /^\s/.test(content);
    text += isApart ? content : ` ${content}`;
  }
  return text + begun;
}

/** The messages as a play with two speakers. */
export function transcript({ system, messages, begun }: Conversation): string {
  const lines = messages.map(({ role, content }) => `${SPEAKERS[role]}: ${content.trim()}`);
  const head = system.trim() === "" ? [] : [`${system.trim()}\n`];
  return [...head, ...lines, `${SPEAKERS.assistant}:${begun}`].join("\n");
}
