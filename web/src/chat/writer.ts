/** Writers of answers in a conversation: the model in this browser, or a server. */

import type { TextDelta } from "setun";
import type { Conversation } from "./prompt.js";
import type { Format } from "./thread.js";

/** A wish for a model that is ready. */
export interface LoadQuestion {
  readonly signal: AbortSignal;
  report(state: string, words: string): void;
}

/** What an answer is written to. */
export interface Question extends LoadQuestion {
  readonly conversation: Conversation;
  readonly format: Format;
  /** How many other answers there are to the same. One with the same seed would be the same text. */
  readonly version: number;
}

/** An answer that is being written, token by token. */
export interface Answer extends AsyncIterable<TextDelta> {
  /** Its figures in words, after the last token. */
  readonly note: Promise<string>;
  /** Ends it with what there is. */
  stop(): void;
}

/** Writes answers. */
export interface Writer {
  /** The name that answers are signed with. */
  readonly name: string;
  /** Whether the model answers questions, as far as is known; otherwise it continues texts. */
  readonly hasChatTemplate: boolean;
  /** Calls `listener` when one of these changes. */
  listen(listener: () => void): void;
  start(question: Question): Promise<Answer>;
  /** Makes the model ready before there is a question. A server's is. */
  load?(question: LoadQuestion): Promise<unknown>;
}
