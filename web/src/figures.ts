/** Figures and messages of a model and of a run. */

import type { GenerationResult, LoadProgress, Model } from "setun";
import { drawChart, duration } from "./chart.js";
import { showDevices } from "./devices.js";
import type { DownloadClock } from "./download-time.js";
import { element, say } from "./elements.js";
import { TokenTimes } from "./token-times.js";

/** Figures of the first generation of a run. */
export class Figures {
  readonly #times = new TokenTimes();
  #drawing = 0;

  constructor() {
    for (const id of ["tokens", "rate", "first", "seed-used"]) say(id, "");
    drawChart([]);
  }

  /** Counts a token. */
  add(): void {
    this.#times.add();
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      this.#show();
    });
  }

  end({ usage, timings, seed }: GenerationResult): void {
    cancelAnimationFrame(this.#drawing);
    this.#show();
    say("tokens", String(usage.completionTokens));
    say("rate", asRate(timings.tokensPerSecond));
    say("seed-used", String(seed));
  }

  #show(): void {
    const { milliseconds, rate } = this.#times;
    const [first] = milliseconds;
    element("pace", HTMLElement).hidden = false;
    say("tokens", String(milliseconds.length));
    say("rate", rate === undefined ? "" : asRate(rate));
    say("first", first === undefined ? "" : duration(first));
    drawChart(milliseconds);
  }
}

const ENDS: Record<GenerationResult["finishReason"], string> = {
  stop: "End of text",
  length: "Length limit reached",
  aborted: "Stopped",
  timeout: "Time limit reached",
  content_filter: "Ended by the content filter",
  tool_calls: "Tools called",
};

/** Finish reason of a generation, in words. */
export function ending({ finishReason, usage }: GenerationResult): string {
  return `${ENDS[finishReason]}: ${usage.completionTokens} tokens, prompt of ${usage.promptTokens} tokens.`;
}

/** Figures of an answer in a chat. */
export function noteOf({ finishReason, usage, timings, seed }: GenerationResult): string {
  const figures = [
    `${usage.completionTokens} tokens`,
    `${asRate(timings.tokensPerSecond)} tokens/s`,
    `seed ${seed}`,
  ];
  return [...(finishReason === "stop" ? [] : [ENDS[finishReason]]), ...figures].join(" · ");
}

/** Speed and seed of a generation without figures. */
export function inWords({ timings, seed }: GenerationResult): string {
  return ` ${asRate(timings.tokensPerSecond)} tokens/s, seed ${seed}.`;
}

const PHASES: Record<LoadProgress["phase"], string> = {
  connecting: "Connecting",
  waiting: "Another tab downloads this model",
  downloading: "Downloading",
  packing: "Preparing",
  checking: "Checking",
  ready: "Ready",
};

export function showProgress(progress: LoadProgress): void {
  element("progress", HTMLElement).hidden = false;
  showShare(element("bar", HTMLProgressElement), progress);
  say("progress-text", progressWords(progress));
}

/** Moves a bar to where a load is. */
export function showShare(bar: HTMLProgressElement, { loadedBytes, totalBytes }: LoadProgress): void {
  if (totalBytes === undefined) bar.removeAttribute("value");
  else bar.value = loadedBytes / totalBytes;
}

/** Progress of a load, in words; with a clock also the time that is left. */
export function progressWords(progress: LoadProgress, clock?: DownloadClock): string {
  const { phase, loadedBytes, totalBytes, file } = progress;
  const total = totalBytes === undefined ? "" : ` of ${megabytes(totalBytes)}`;
  const left = clock?.left(progress);
  const words = [`${megabytes(loadedBytes)}${total} MB`, ...(left === undefined ? [] : [left]), file];
  return [PHASES[phase], ...words].join(" · ");
}

export function usedBy({ info }: Model): string {
  return `${info.backend} · ${info.level}`;
}

export function showModel(model: Model): void {
  const { info } = model;
  element("chat-choice", HTMLElement).hidden = !info.hasChatTemplate;
  const used = element("backend-used", HTMLElement);
  used.dataset.backend = info.backend;
  used.dataset.level = info.level;
  say("backend-used", usedBy(model));
  say("threads-used", String(info.threads));
  say("build-used", info.build);
  showDevices(model.deviceReport());
}

function asRate(rate: number): string {
  return rate.toFixed(rate < 100 ? 1 : 0);
}

/** A size, such as `1.2 GB`. */
export function size(bytes: number): string {
  if (bytes < 1e3) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${megabytes(bytes)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
