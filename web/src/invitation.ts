/** The invitation to chat with a larger model. */

import { type CatalogEntry, models } from "setun";
import { type Choice, choiceFor } from "./current-model.js";
import { expectedTime } from "./download-time.js";
import { element, say } from "./elements.js";
import { size } from "./figures.js";
import { detectDevice, fitOf } from "./picker/device-fit.js";
import { recommended } from "./picker/families.js";

/** Offers the recommended model. `begin` is called with the model and with the question, which may be empty. */
export async function invite(begin: (choice: Choice, question: string) => void): Promise<void> {
  const device = await detectDevice();
  const entry = recommended(device);
  const place = element("invitation", HTMLElement);
  const here = element("chat-here", HTMLButtonElement);
  place.hidden = entry === undefined;
  here.hidden = entry === undefined;
  if (entry === undefined) return;
  const isStored = await models.has(entry.name).catch(() => false);
  const button = element("chat-with", HTMLButtonElement);
  const field = element("first-question", HTMLTextAreaElement);
  for (const each of [button, here])
    each.textContent = isStored
      ? `Chat with ${entry.title}`
      : `Chat with ${entry.title}, ${Math.round(entry.bytes / 1e6)} MB`;
  say("chat-cost", [...costs(entry, isStored), await room(entry, isStored)].filter(Boolean).join(" "));
  say("chat-fit", `${fitOf(entry.memory, device).words}. What you write stays on this machine.`);
  const start = () => {
    const question = field.value.trim();
    field.value = "";
    begin(choiceFor(entry.name), question);
  };
  button.addEventListener("click", start);
  // In the chat the question is written into the chat's own field.
  here.addEventListener("click", () => begin(choiceFor(entry.name), ""));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    // The page's own shortcut writes a story.
    event.stopPropagation();
    start();
  });
  place.dataset.ready = "";
}

/** What the model costs, in sentences. */
function costs({ bytes, memory }: CatalogEntry, isStored: boolean): string[] {
  const needs = `It needs ${size(memory)} of memory while it runs.`;
  if (isStored) return [`The model is stored in this browser.`, needs];
  const time = expectedTime(bytes);
  const took =
    time === undefined
      ? "The time is shown after the first bytes."
      : `At the measured rate, that takes ${time}.`;
  return [`The browser downloads ${size(bytes)} once and keeps them.`, took, needs];
}

/** A warning, if the browser has too little room. */
async function room({ bytes }: CatalogEntry, isStored: boolean): Promise<string> {
  const { usage = 0, quota } = (await navigator.storage?.estimate?.().catch(() => undefined)) ?? {};
  if (isStored || quota === undefined || quota - usage >= bytes) return "";
  return `This browser has room for ${size(Math.max(0, quota - usage))} only, so it will download them again next time.`;
}
