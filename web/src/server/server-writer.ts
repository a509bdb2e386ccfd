/** Answers of the server's models. */

import type { TextDelta } from "setun";
import { ALTERNATIVES } from "../alternatives.js";
import { chatMessages, oneText, transcript, usedFormat } from "../chat/prompt.js";
import type { Answer, Question, Writer } from "../chat/writer.js";
import { readAnswer } from "../controls.js";
import { element } from "../elements.js";
import { ApiError, events, post } from "./api.js";
import { type Chunk, stepOf, type TokenNames } from "./chunks.js";

/** The finish reasons that are worth a word. */
const ENDS: Record<string, string> = {
  length: "Length limit reached",
  content_filter: "Ended by the content filter",
};

/** Writes with one of the server's models, in a batch with whatever else it does. */
export class ServerWriter implements Writer {
  readonly #names: TokenNames;
  readonly #listeners: (() => void)[] = [];
  /** Whether models have a chat template, as far as the server was asked. */
  readonly #templates = new Map<string, boolean>();
  #model = "";

  constructor(names: TokenNames) {
    this.#names = names;
  }

  get name(): string {
    return this.#model;
  }

  get hasChatTemplate(): boolean {
    return this.#templates.get(this.#model) ?? true;
  }

  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Answers with another model from now on. */
  async choose(model: string): Promise<void> {
    this.#model = model;
    await this.#lookUpTemplate(model);
    for (const listener of this.#listeners) listener();
  }

  /** The server says of a model without a template that it cannot read messages. */
  async #lookUpTemplate(model: string): Promise<void> {
    if (this.#templates.has(model)) return;
    try {
      await post("/tokenize", { model, messages: [{ role: "user", content: "a" }] });
      this.#templates.set(model, true);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      this.#templates.set(model, false);
    }
  }

  async start(question: Question): Promise<Answer> {
    const model = this.#model;
    question.report("running", "Reading the conversation…");
    await this.#lookUpTemplate(model);
    const controller = new AbortController();
    const stop = () => controller.abort(question.signal.reason);
    question.signal.addEventListener("abort", stop, { once: true });
    const { path, fields } = this.#request(model, question);
    const response = await post(path, fields, controller.signal);
    question.report("running", "Generating…");
    const written = new Written(response, this.#names, controller.signal);
    return { [Symbol.asyncIterator]: () => written.steps(), note: written.note, stop };
  }

  #request(model: string, { conversation, format, version }: Question) {
    const { speculative, topK: top_k, topP: top_p, maxTokens: max_tokens, ...others } = readAnswer(version);
    const options = {
      ...{ model, stream: true, stream_options: { include_usage: true } },
      ...{ ...others, top_k, top_p, max_tokens, lookahead: speculative?.lookahead },
    };
    const hasLogprobs = element("probabilities", HTMLInputElement).checked;
    const used = usedFormat(format, this.hasChatTemplate);
    if (used === "template") {
      const asked = {
        messages: chatMessages(conversation),
        ...(conversation.begun !== "" && { continue_final_message: true }),
        ...(hasLogprobs && { logprobs: true, top_logprobs: ALTERNATIVES }),
      };
      return { path: "/v1/chat/completions", fields: { ...options, ...asked } };
    }
    const text =
      used === "together"
        ? { prompt: oneText(conversation) }
        : { prompt: transcript(conversation), stop: ["\nUser:"] };
    const logprobs = hasLogprobs && { logprobs: ALTERNATIVES };
    return { path: "/v1/completions", fields: { ...options, ...logprobs, ...text } };
  }
}

/** An answer as it comes. */
class Written {
  readonly note: Promise<string>;
  readonly #response: Response;
  readonly #names: TokenNames;
  readonly #signal: AbortSignal;
  #end: (note: string) => void = () => {};

  constructor(response: Response, names: TokenNames, signal: AbortSignal) {
    this.#response = response;
    this.#names = names;
    this.#signal = signal;
    this.note = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  async *steps(): AsyncGenerator<TextDelta> {
    const times: number[] = [];
    let ending = "";
    let tokens: number | undefined;
    try {
      for await (const event of events(this.#response)) {
        const chunk = event as Chunk;
        tokens = chunk.usage?.completion_tokens ?? tokens;
        ending = chunk.choices[0]?.finish_reason ?? ending;
        const step = stepOf(chunk, this.#names);
        if (step === undefined) continue;
        times.push(performance.now());
        yield step;
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      ending = "stopped";
    }
    this.#end(noteOf(ENDS[ending] ?? (ending === "stopped" ? "Stopped" : ""), tokens ?? times.length, times));
  }
}

/** Figures of an answer in words, as this page saw it. */
function noteOf(ending: string, tokens: number, times: readonly number[]): string {
  const [first = 0] = times;
  const seconds = ((times.at(-1) ?? first) - first) / 1000;
  const rate = seconds > 0 ? (times.length - 1) / seconds : undefined;
  const figures = [`${tokens} tokens`, ...(rate ? [`${rate.toFixed(rate < 100 ? 1 : 0)} tokens/s`] : [])];
  return [...(ending === "" ? [] : [ending]), ...figures].join(" · ");
}
