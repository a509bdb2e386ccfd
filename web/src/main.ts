/** Wires the page's controls to its views and runs. */

import { Activity } from "./activity.js";
import { alternativesAt } from "./alternatives.js";
import { Column } from "./column.js";
import {
  BUILT_IN,
  type Choice,
  CurrentModel,
  choiceFor,
  rememberChoice,
  remembered,
} from "./current-model.js";
import { element, say } from "./elements.js";
import { EnginePanel } from "./engine-panel.js";
import { endFirstVisit, wantsFirstStory } from "./first-visit.js";
import { chosenModel, droppedModel } from "./folders.js";
import { definitionIsShown, listenToTerms } from "./glossary.js";
import { offerGpu } from "./gpu.js";
import { invite } from "./invitation.js";
import { keepBuilds, keepFetched, registerServiceWorker } from "./offline.js";
import { openViews } from "./open-views.js";
import { type Columns, fork, move, run, showSecond } from "./run.js";
import { SecondModel } from "./second-model.js";
import { modelOf, textOf } from "./story.js";
import { type CardContents, TokenCard } from "./token-card.js";
import type { TokenListener } from "./tokens.js";

const form = element("form", HTMLFormElement);
const starts = buttons("run", "send", "benchmark-run", "parity-run", "explorer-current");
const stops = buttons("stop", "chat-stop", "benchmark-stop", "parity-stop", "explorer-stop");
const address = element("address", HTMLInputElement);
const folder = element("folder", HTMLInputElement);
const files = element("files", HTMLInputElement);
const builtIn = element("built-in", HTMLButtonElement);
const backend = element("backend", HTMLSelectElement);

const two = element("two", HTMLInputElement);

const current = new CurrentModel();
const models = { first: current, second: new SecondModel(current) };
const card = new TokenCard();
const columns: Columns = [new Column("", tokenListener), new Column("-2", tokenListener)];
const panel = new EnginePanel(() => current.loaded?.model);
const activity = new Activity((isRunning) => {
  panel.isRunning = isRunning;
  for (const button of starts) button.disabled = isRunning;
  for (const button of stops) button.disabled = !isRunning;
});
let isReady = false;
const views = openViews({ current, activity, choose, write: () => begin(run), openStory: writeFirstStory });

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!activity.isRunning) views.submit();
});

backend.addEventListener("change", async () => {
  if (!activity.isRunning && current.loaded === undefined) return;
  await activity.stop();
  begin(move);
});

function begin(work: typeof run): void {
  endFirstVisit();
  card.close();
  activity.start((signal) => work(models, columns, signal));
}

/** What the tokens of a column do. */
function tokenListener(column: Column): TokenListener {
  const contents = (place: number) => cardOf(column, place);
  return {
    look: (place, mark) => withCard(contents(place), (known) => card.look(mark, known)),
    take: (place, mark) => withCard(contents(place), (known) => card.hold(mark, column.output, known)),
    leave: () => card.leave(),
  };
}

/** What the card shows of a token, while a model is loaded. */
function cardOf(column: Column, place: number): CardContents | undefined {
  const { story } = column;
  const step = story?.steps[place];
  const model = story && modelOf(story);
  if (story === undefined || step === undefined || model === undefined) return undefined;
  return {
    token: step.token,
    alternatives: alternativesAt(story.steps, place),
    textOf: (token) => textOf(model, story, place, token),
    choose: (token) => activity.start((signal) => fork(columns, { column, place, token }, signal)),
  };
}

function withCard(contents: CardContents | undefined, act: (contents: CardContents) => void): void {
  if (contents !== undefined) act(contents);
}

for (const button of stops) button.addEventListener("click", () => void activity.stop());

two.addEventListener("change", () => {
  element("other", HTMLElement).hidden = !two.checked;
  if (two.checked) void models.second.offer();
  if (!activity.isRunning) showSecond(two.checked || columns[1].story !== undefined);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !definitionIsShown()) void activity.stop();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

address.addEventListener("change", () => {
  const url = address.value.trim();
  choose(url === "" ? BUILT_IN : choiceFor(url));
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
  if (model && !views.drop(model)) choose(model);
});

/** Takes another model from the next run on. */
function choose(choice: Choice): void {
  current.choose(choice);
  rememberChoice(choice);
  address.value = typeof choice.source === "string" ? choice.source : "";
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

function buttons(...ids: string[]): HTMLButtonElement[] {
  return ids.map((id) => element(id, HTMLButtonElement));
}

/** On the first visit a story writes itself, as soon as the page will not be loaded again. */
function writeFirstStory(): void {
  if (isReady && !activity.isRunning && current.choice === BUILT_IN && wantsFirstStory()) begin(run);
}

// The chat as the built-in model, which has no template, leaves it: nothing jumps when it opens.
element("chat-notice", HTMLElement).hidden = false;
element("system-prompt", HTMLElement).hidden = true;
listenToTerms();
void offerGpu();
void invite((choice, question) => {
  choose(choice);
  views.ask(question);
});
const rememberedChoice = remembered().then((choice) => {
  const isChosen = activity.isRunning || current.choice !== BUILT_IN;
  if (choice && !isChosen) choose(choice);
});
const mayReload = () => !activity.isRunning && !document.activeElement?.matches("input, textarea");
void start();

/** The first story comes before what is installed for later visits, where the page needs no service worker for its headers. */
async function start(): Promise<void> {
  isReady = crossOriginIsolated || (await registerServiceWorker(mayReload));
  await rememberedChoice;
  if (isReady && views.isStory()) writeFirstStory();
  if (crossOriginIsolated) {
    await activity.idle();
    await registerServiceWorker(mayReload);
    if (current.loaded !== undefined) await keepFetched();
  }
  if (isReady) await keepBuilds(() => activity.isRunning || current.loaded !== undefined);
}
