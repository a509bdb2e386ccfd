/** The offscreen document: loads the model once, and generates for all parts of the extension. */

import { load } from "./node_modules/setun/dist/index.js";

const OPTIONS = { minTokens: 20, maxTokens: 60 };

const loading = load().then((model) => ({ model, loadedAt: new Date().toISOString() }));

/** A port named `stream`: each prompt is answered by `{ text }` as it is generated, and a last message. */
chrome.runtime.onConnect.addListener((port) => {
  if (port.name !== "stream") return;
  let generation;
  port.onDisconnect.addListener(() => generation?.stop());
  port.onMessage.addListener(async ({ prompt }) => {
    try {
      const { model, loadedAt } = await loading;
      generation = model.generate(prompt, OPTIONS);
      for await (const { text } of generation) port.postMessage({ text });
      const { finishReason } = await generation.result;
      port.postMessage({ finishReason, build: model.info.build, loadedAt });
    } catch ({ code, message }) {
      port.postMessage({ error: `${code}: ${message}` });
    }
  });
});

/** One message for a whole text. */
chrome.runtime.onMessage.addListener((message, _sender, respond) => {
  if (message.to !== "offscreen") return false;
  complete(message).then(respond);
  return true;
});

async function complete({ prompt }) {
  try {
    const { model, loadedAt } = await loading;
    return { text: await model.generate(prompt, OPTIONS).text(), loadedAt };
  } catch ({ code, message }) {
    return { error: `${code}: ${message}` };
  }
}
