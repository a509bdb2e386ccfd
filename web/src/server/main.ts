/** Wires the page that `setun serve` has at `/ui`. */

import { Activity } from "../activity.js";
import { alternativesAt } from "../alternatives.js";
import { Chat, type StepsView } from "../chat/chat.js";
import { element, make } from "../elements.js";
import { explain } from "../explain.js";
import { TokenCard } from "../token-card.js";
import { Tokens } from "../tokens.js";
import { Views } from "../views.js";
import { ApiError, apiKey, send } from "./api.js";
import { branchAt, TokenNames } from "./chunks.js";
import { Monitor } from "./monitor.js";
import { ServerWriter } from "./server-writer.js";

const form = element("form", HTMLFormElement);
const models = element("model", HTMLSelectElement);
const key = element("key", HTMLInputElement);
const failure = element("page-status", HTMLElement);
const names = new TokenNames();
const writer = new ServerWriter(names);
const card = new TokenCard();
const activity = new Activity((isRunning) => {
  element("send", HTMLButtonElement).disabled = isRunning;
  element("chat-stop", HTMLButtonElement).disabled = !isRunning;
});

element("chat-stop", HTMLButtonElement).addEventListener("click", () => void activity.stop());
document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape") void activity.stop();
});
models.addEventListener("change", () => void attempt(() => writer.choose(models.value)));
key.addEventListener("change", () => {
  apiKey.value = key.value.trim();
  void attempt(listModels);
});

/** Shows the tokens of an answer, with the alternatives of the one that is looked at; another one forks the answer. */
const showSteps: StepsView = (steps, begin) => {
  const place = make("div", { className: "answer-tokens", role: "group", ariaLabel: "Tokens of the answer" });
  place.dataset.shaded = "";
  const contents = (at: number) => ({
    token: steps[at]?.token ?? 0,
    alternatives: alternativesAt(steps, at),
    textOf: async (token: number) => names.name(token),
    choose: (token: number) => {
      const branch = branchAt(steps, at, token);
      if (branch !== undefined) begin(branch);
    },
  });
  const tokens = new Tokens(place, {
    look: (at, mark) => card.look(mark, contents(at)),
    take: (at, mark) => card.hold(mark, place, contents(at)),
    leave: () => card.leave(),
  });
  for (const step of steps) tokens.add(step);
  return place;
};

async function listModels(): Promise<void> {
  const { data } = (await (await send("/v1/models")).json()) as { data: { id: string }[] };
  models.replaceChildren(...data.map(({ id }) => make("option", { value: id, textContent: id })));
  await writer.choose(models.value);
}

/** Does something, and says what it fails with. Where a key is missing, it is asked for. */
async function attempt(act: () => Promise<void>): Promise<void> {
  try {
    await act();
    failure.hidden = true;
  } catch (error) {
    failure.hidden = false;
    failure.textContent = explain(error);
    if (!(error instanceof ApiError) || error.status !== 401) return;
    failure.textContent = "This server needs a key of its own. It stays in this tab.";
    element("access", HTMLElement).hidden = false;
    key.focus();
  }
}

new Views(["chat", "server"]).start();
key.value = apiKey.value;
await attempt(listModels);
const chat = await Chat.open(writer, activity, showSteps);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!activity.isRunning) chat.send();
});
void new Monitor().run();
