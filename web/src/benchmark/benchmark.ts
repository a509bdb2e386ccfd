/** The view of the benchmark: the speed of a model in this browser, and results of others by link. */

import type { Model } from "setun";
import type { Activity } from "../activity.js";
import { readBackend } from "../controls.js";
import type { CurrentModel } from "../current-model.js";
import { element, make } from "../elements.js";
import { explain } from "../explain.js";
import { progressWords, showModel } from "../figures.js";
import { comparisonCharts } from "./comparison.js";
import { type BenchmarkResult, browserName, fromFragment, median, toFragment } from "./result.js";

const ROUNDS = 3;
const NEW_TOKENS = 64;

/** Tokens of the prompt, if the context has room. */
const PROMPT_TOKENS = 128;

const SENTENCE = "Once upon a time there was a little fox who lived in a big forest and liked to run. ";

/** Runs the benchmark and shows results. */
export class Benchmark {
  readonly #current: CurrentModel;
  readonly #activity: Activity;
  readonly #status = element("benchmark-status", HTMLElement);
  readonly #share = element("benchmark-share", HTMLButtonElement);
  #own: BenchmarkResult | undefined;
  #shared: BenchmarkResult | undefined;

  constructor(current: CurrentModel, activity: Activity) {
    this.#current = current;
    this.#activity = activity;
    this.#share.addEventListener("click", () => void this.#copy());
    this.#show();
  }

  /** Shows the result of a link beside this browser's. */
  showShared(fragment: string): void {
    if (fragment === "") return;
    this.#shared = fromFragment(fragment);
    if (this.#shared === undefined) this.#report("failed", "This link holds no result of a benchmark.");
    this.#show();
  }

  run(): void {
    this.#activity.start(async (signal) => {
      try {
        this.#report("loading", "Loading the model…");
        const model = await this.#current.get(readBackend(), {
          signal,
          onProgress: (progress) => this.#report("loading", progressWords(progress)),
        });
        showModel(model);
        this.#own = await this.#measure(model, signal);
        this.#report("done", "Done.");
      } catch (error) {
        const isStopped = signal.aborted;
        this.#report(isStopped ? "idle" : "failed", isStopped ? "Stopped." : explain(error));
      }
      this.#show();
    });
  }

  async #measure(model: Model, signal: AbortSignal): Promise<BenchmarkResult> {
    const prompt = await promptOf(model);
    const prefills: number[] = [];
    const decodes: number[] = [];
    let promptTokens = 0;
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round += 1) {
      this.#report("running", round === 0 ? "Warming up…" : `Round ${round} of ${ROUNDS}…`);
      await model.resetPrefixCache();
      const options = { temperature: 0, minTokens: NEW_TOKENS, maxTokens: NEW_TOKENS, signal };
      const { usage, timings } = await model.generate(prompt, options).result;
      if (round === 0) continue;
      promptTokens = usage.promptTokens;
      prefills.push(promptTokens / timings.firstTokenSeconds);
      decodes.push(timings.tokensPerSecond);
    }
    const { build, backend, level, threads } = model.info;
    const { name } = this.#current.choice;
    const [browser, cores] = [browserName(navigator.userAgent), navigator.hardwareConcurrency];
    const speed = { prefill: median(prefills), decode: median(decodes) };
    return {
      model: name,
      build,
      backend,
      level,
      threads,
      promptTokens,
      tokens: NEW_TOKENS,
      ...speed,
      browser,
      cores,
    };
  }

  async #copy(): Promise<void> {
    if (this.#own === undefined) return;
    const link = new URL(`#benchmark=${toFragment(this.#own)}`, location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      this.#report("done", "The link is copied. It holds the result itself; nothing is sent.");
    } catch {
      this.#report("done", link);
    }
    this.#share.dataset.link = link; // after the words: tests wait for it
  }

  #show(): void {
    const results = [
      ...(this.#own ? [resultCard("This browser", this.#own)] : []),
      ...(this.#shared ? [resultCard("From the link", this.#shared)] : []),
    ];
    element("benchmark-results", HTMLElement).replaceChildren(...results);
    element("benchmark-comparisons", HTMLElement).replaceChildren(...comparisonCharts(this.#own));
    this.#share.disabled = this.#own === undefined;
  }

  #report(state: string, words: string): void {
    this.#status.dataset.state = state;
    this.#status.textContent = words;
  }
}

/** A prompt of about {@link PROMPT_TOKENS} tokens, or of a quarter of a small context. */
async function promptOf(model: Model): Promise<string> {
  const length = Math.min(PROMPT_TOKENS, Math.floor(model.info.contextLength / 4));
  const { length: one } = await model.tokenize(SENTENCE);
  return SENTENCE.repeat(Math.max(1, Math.floor(length / one))).trim();
}

function resultCard(title: string, result: BenchmarkResult): HTMLElement {
  const figures = [
    ["Decode, tokens/s", result.decode.toFixed(1)],
    [`Prompt of ${result.promptTokens}, tokens/s`, result.prefill.toFixed(0)],
    ["Model", result.model],
    ["Backend", `${result.backend} · ${result.level}`],
    ["Build", result.build],
    ["Threads", `${result.threads} of ${result.cores} cores`],
    ["Browser", result.browser],
  ].map(([name = "", value = ""]) =>
    make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
  );
  return make(
    "section",
    { className: "result" },
    make("h3", { textContent: title }),
    make("dl", {}, ...figures),
  );
}
