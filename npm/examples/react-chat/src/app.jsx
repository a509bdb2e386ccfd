/** Loads a model, then shows the chat. */

import { DirectChatTransport, ToolLoopAgent } from "ai";
import { useState } from "react";
import { load, models } from "setun";
import { createSetun } from "setun/ai-sdk";
import { Chat } from "./chat.jsx";

const CHAT_MODELS = models.catalog.filter(({ chatTemplate }) => chatTemplate);

/** An agent of the AI SDK, called in this page instead of on a server. */
async function openChat(source, maxOutputTokens, onProgress) {
  const model = await load(source, { onProgress });
  const agent = new ToolLoopAgent({
    model: createSetun(model)(),
    instructions: "You are a helpful assistant.",
    maxOutputTokens,
  });
  return new DirectChatTransport({ agent });
}

export function App() {
  const [transport, setTransport] = useState();
  const [status, setStatus] = useState("");

  function showProgress({ phase, loadedBytes, totalBytes }) {
    const percent = totalBytes ? ` ${Math.round((100 * loadedBytes) / totalBytes)} %` : "";
    setStatus(`${phase}${percent}`);
  }

  async function start(event) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    try {
      setTransport(await openChat(form.get("source"), Number(form.get("tokens")), showProgress));
    } catch (error) {
      setStatus(`${error.code}: ${error.message}`);
    }
  }

  if (transport) return <Chat transport={transport} />;
  return (
    <form onSubmit={start}>
      <label>
        Model: <input name="source" list="models" defaultValue="falcon-e-1b" required />
      </label>
      <datalist id="models">
        {CHAT_MODELS.map(({ name, title, bytes, licence }) => (
          <option key={name} value={name}>
            {`${title}, ${Math.round(bytes / 1e6)} MB, ${licence}`}
          </option>
        ))}
      </datalist>
      <label>
        Tokens of an answer: <input name="tokens" type="number" min="1" defaultValue="300" />
      </label>
      <button type="submit">Load</button>
      <p role="status">{status}</p>
    </form>
  );
}
