/**
 * The background: opens the offscreen document, and answers other parts of the extension.
 *
 * A browser ends an idle service worker and all that is in it, so the model runs in an offscreen document.
 */

let opening;

/** Opens the offscreen document unless it is there: an extension may have one. */
function openOffscreen() {
  opening ??= createOffscreen().finally(() => {
    opening = undefined;
  });
  return opening;
}

async function createOffscreen() {
  const open = await chrome.runtime.getContexts({ contextTypes: ["OFFSCREEN_DOCUMENT"] });
  if (open.length > 0) return;
  await chrome.offscreen.createDocument({
    url: "offscreen.html",
    reasons: ["WORKERS"],
    justification: "Runs a language model in workers",
  });
}

/** `{ to: "background" }` opens the model; with a `prompt` the answer is a whole text, or an error. */
chrome.runtime.onMessage.addListener((message, _sender, respond) => {
  if (message.to !== "background") return false;
  answer(message).then(respond);
  return true;
});

async function answer({ prompt }) {
  await openOffscreen();
  return prompt === undefined ? {} : chrome.runtime.sendMessage({ to: "offscreen", prompt });
}
