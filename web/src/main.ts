/** Wires the page's controls to runs. */

import { BUILT_IN, type Choice, CurrentModel } from "./current-model.js";
import { element, say } from "./elements.js";
import { chosenModel, droppedModel } from "./folders.js";
import { offerGpu } from "./gpu.js";
import { move, run } from "./run.js";

const form = element("form", HTMLFormElement);
const runButton = element("run", HTMLButtonElement);
const stopButton = element("stop", HTMLButtonElement);
const address = element("address", HTMLInputElement);
const folder = element("folder", HTMLInputElement);
const files = element("files", HTMLInputElement);
const builtIn = element("built-in", HTMLButtonElement);
const backend = element("backend", HTMLSelectElement);

const current = new CurrentModel();
let running: AbortController | undefined;
let ended = Promise.resolve();

form.addEventListener("submit", (event) => {
  event.preventDefault();
  begin(run);
});

backend.addEventListener("change", async () => {
  if (running === undefined && !current.isLoaded) return;
  running?.abort();
  await ended;
  begin(move);
});

/** Starts what can be stopped, unless something runs. */
function begin(work: typeof run): void {
  if (running !== undefined) return;
  running = new AbortController();
  runButton.disabled = true;
  stopButton.disabled = false;
  ended = work(current, running.signal).then(() => {
    running = undefined;
    runButton.disabled = false;
    stopButton.disabled = true;
  });
}

stopButton.addEventListener("click", () => running?.abort());

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

address.addEventListener("change", () => {
  const url = address.value.trim();
  choose(url === "" ? BUILT_IN : { name: url, source: url });
});

for (const input of [folder, files]) {
  input.addEventListener("change", () => {
    const model = input.files && chosenModel(input.files);
    if (model) choose(model);
  });
}

builtIn.addEventListener("click", () => choose(BUILT_IN));

const drop = element("drop", HTMLElement);
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.hidden = false;
});
document.addEventListener("dragleave", (event) => {
  drop.hidden = event.relatedTarget === null;
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.hidden = true;
  const model = event.dataTransfer && droppedModel(event.dataTransfer);
  if (model) choose(model);
});

/** Takes another model from the next run on. */
function choose(choice: Choice): void {
  current.choose(choice);
  if (typeof choice.source !== "string") address.value = "";
  builtIn.hidden = choice === BUILT_IN;
  say("model-name", choice.name);
  say("status", choice === BUILT_IN ? "" : "The model loads on the next run.");
}

say(
  "isolation",
  crossOriginIsolated
    ? "This page is cross-origin isolated: threads can be used."
    : "This page is not cross-origin isolated: one thread.",
);

void offerGpu();
