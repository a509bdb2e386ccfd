/** One run: load if needed, generate, show. */

import { type Generation, type GenerationResult, type LoadProgress, type Model, SetunError } from "setun";
import { drawChart, duration } from "./chart.js";
import { readBackend, readGeneration } from "./controls.js";
import type { CurrentModel } from "./current-model.js";
import { showDevices } from "./devices.js";
import { element, say } from "./elements.js";
import { Pace } from "./pace.js";

type State = "idle" | "loading" | "running" | "done" | "failed";

/** Runs what the controls say, until it ends or `signal` aborts. */
export async function run(current: CurrentModel, signal: AbortSignal): Promise<void> {
  clear();
  try {
    const { prompt, options } = readGeneration();
    const model = await loadModel(current, signal);
    showModel(model);
    setState("running", "Reading the prompt…");
    const generation = start(model, prompt, options);
    const stop = () => generation.stop();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    await show(generation);
    setState("done", describe(await generation.result));
  } catch (error) {
    if (signal.aborted && error === signal.reason) setState("done", "Stopped while loading.");
    else setState("failed", explain(error));
  } finally {
    element("text", HTMLOutputElement).ariaBusy = "false";
    element("progress", HTMLElement).hidden = true;
  }
}

/** Moves the model to the backend that the controls say, without writing anything. */
export async function move(current: CurrentModel, signal: AbortSignal): Promise<void> {
  try {
    const model = await loadModel(current, signal);
    showModel(model);
    setState("idle", `Moved: the next text is written on ${usedBy(model)}.`);
  } catch (error) {
    if (signal.aborted && error === signal.reason) setState("idle", "Stopped while loading.");
    else setState("failed", explain(error));
  } finally {
    element("progress", HTMLElement).hidden = true;
  }
}

async function loadModel(current: CurrentModel, signal: AbortSignal): Promise<Model> {
  setState("loading", "Loading the model…");
  return current.get(readBackend(), { signal, onProgress: showProgress });
}

function start(model: Model, prompt: string, options: object): Generation {
  const asChat = model.info.hasChatTemplate && element("chat", HTMLInputElement).checked;
  say("echo", asChat ? `${prompt}\n\n` : prompt);
  return asChat ? model.chat([{ role: "user", content: prompt }], options) : model.generate(prompt, options);
}

async function show(generation: Generation): Promise<void> {
  const text = element("text", HTMLOutputElement);
  const pace = new Pace();
  text.ariaBusy = "true";
  let drawing = 0;
  for await (const delta of generation) {
    pace.add();
    text.append(delta.text);
    if (pace.milliseconds.length === 1) setState("running", "Generating…");
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      showPace(pace);
    });
  }
  cancelAnimationFrame(drawing);
  showPace(pace);
}

function showProgress({ loadedBytes, totalBytes, file }: LoadProgress): void {
  const bar = element("bar", HTMLProgressElement);
  element("progress", HTMLElement).hidden = false;
  if (totalBytes === undefined) bar.removeAttribute("value");
  else bar.value = loadedBytes / totalBytes;
  const total = totalBytes === undefined ? "" : ` of ${megabytes(totalBytes)}`;
  say("progress-text", `${megabytes(loadedBytes)}${total} MB · ${file}`);
}

function usedBy({ info }: Model): string {
  return `${info.backend} · ${info.level}`;
}

function showModel(model: Model): void {
  const { info } = model;
  element("progress", HTMLElement).hidden = true;
  element("chat-choice", HTMLElement).hidden = !info.hasChatTemplate;
  const used = element("backend-used", HTMLElement);
  used.dataset.backend = info.backend;
  used.dataset.level = info.level;
  say("backend-used", usedBy(model));
  say("threads-used", String(info.threads));
  say("build-used", info.build);
  showDevices(model.deviceReport());
}

function showPace(pace: Pace): void {
  const [first] = pace.milliseconds;
  say("tokens", String(pace.milliseconds.length));
  say("rate", pace.rate === undefined ? "–" : pace.rate.toFixed(pace.rate < 100 ? 1 : 0));
  say("first", first === undefined ? "–" : duration(first));
  drawChart(pace.milliseconds);
}

function describe({ finishReason, usage, timings, seed }: GenerationResult): string {
  say("tokens", String(usage.generatedTokens));
  say("rate", timings.tokensPerSecond.toFixed(timings.tokensPerSecond < 100 ? 1 : 0));
  say("seed-used", String(seed));
  const ends = {
    stop: "The model ended the text",
    length: "The limit is reached",
    aborted: "Stopped",
    deadline: "The time is over",
    filtered: "The filter ended the text",
  };
  return `${ends[finishReason]}: ${usage.generatedTokens} tokens after a prompt of ${usage.promptTokens}.`;
}

function explain(error: unknown): string {
  if (error instanceof SetunError) return `${error.message} (${error.code})`;
  return error instanceof Error ? error.message : String(error);
}

function clear(): void {
  say("echo", "");
  say("text", "");
  for (const id of ["tokens", "rate", "first", "seed-used"]) say(id, "–");
  drawChart([]);
}

function setState(state: State, words: string): void {
  const status = element("status", HTMLElement);
  status.dataset.state = state;
  status.textContent = words;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
