/** The popup: has the background open the model, and streams from it by a port. Closing the popup ends the text. */

const [form, output, status] = ["form", "#output", "#status"].map((each) => document.querySelector(each));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const prompt = new FormData(form).get("prompt");
  output.textContent = "";
  status.textContent = "loading";
  await chrome.runtime.sendMessage({ to: "background" });
  const port = chrome.runtime.connect({ name: "stream" });
  port.onMessage.addListener((message) => {
    if (message.text !== undefined) output.append(message.text);
    else if (message.error !== undefined) status.textContent = message.error;
    else status.textContent = `${message.finishReason}: ${message.build}, loaded at ${message.loadedAt}`;
    if (message.text === undefined) port.disconnect();
  });
  port.postMessage({ prompt });
});
