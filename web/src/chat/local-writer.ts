/** Answers of the model in this browser. */

import type { GenerationResult, Model } from "setun";
import { readAnswer, readBackend } from "../controls.js";
import { BUILT_IN, type CurrentModel } from "../current-model.js";
import { DownloadClock } from "../download-time.js";
import { noteOf, progressWords, showModel } from "../figures.js";
import { startAnswer, usedFormat } from "./prompt.js";
import type { Answer, LoadQuestion, Question, Writer } from "./writer.js";

/** Loads the chosen model when it is first needed. */
export class LocalWriter implements Writer {
  readonly #current: CurrentModel;

  constructor(current: CurrentModel) {
    this.#current = current;
  }

  get name(): string {
    return this.#current.choice === BUILT_IN ? "Story model" : this.#current.choice.name;
  }

  get hasChatTemplate(): boolean {
    return this.#current.loaded?.model.info.hasChatTemplate ?? this.#current.choice !== BUILT_IN;
  }

  listen(listener: () => void): void {
    this.#current.listen(listener);
  }

  async load({ signal, report }: LoadQuestion): Promise<Model> {
    report("loading", "Loading the model…");
    const clock = new DownloadClock();
    const model = await this.#current.get(readBackend(), {
      signal,
      onProgress: (progress) => report("loading", progressWords(progress, clock)),
    });
    showModel(model);
    return model;
  }

  async start({ conversation, format, version, signal, report }: Question): Promise<Answer> {
    const model = await this.load({ signal, report });
    report("running", "Reading the conversation…");
    const used = usedFormat(format, model.info.hasChatTemplate);
    const generation = startAnswer(model, used, conversation, readAnswer(version));
    return {
      [Symbol.asyncIterator]: () => generation[Symbol.asyncIterator](),
      note: generation.result.then((result: GenerationResult) => noteOf(result)),
      stop: () => generation.stop(),
    };
  }
}
