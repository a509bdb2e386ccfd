/** Loads a model, then shows the chat. */

import { DirectChatTransport, ToolLoopAgent } from "ai";
import { useMemo, useState } from "react";
import { load, models } from "setun";
import { createSetun } from "setun/ai-sdk";
import { useModel } from "setun/react";
import { Chat } from "./chat.jsx";

const CHAT_MODELS = models.catalog.filter(({ chatTemplate }) => chatTemplate);

/** An agent of the AI SDK, called in this page instead of on a server. */
function transportOf(model, maxOutputTokens) {
  const agent = new ToolLoopAgent({
    model: createSetun(model)(),
    instructions: "You are a helpful assistant.",
    maxOutputTokens,
  });
  return new DirectChatTransport({ agent });
}

function describe({ status, progress, error }) {
  if (status === "error") return `${error.code}: ${error.message}`;
  if (!progress) return status === "loading" ? "loading" : "";
  const { phase, loadedBytes, totalBytes } = progress;
  return totalBytes ? `${phase} ${Math.round((100 * loadedBytes) / totalBytes)} %` : phase;
}

export function App() {
  const [{ source, tokens }, setRequest] = useState({ source: null, tokens: 0 });
  const state = useModel(load, source);
  const transport = useMemo(() => state.model && transportOf(state.model, tokens), [state.model, tokens]);

  function start(event) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setRequest({ source: form.get("source"), tokens: Number(form.get("tokens")) });
    if (state.status === "error") state.retry();
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
      <p role="status">{describe(state)}</p>
    </form>
  );
}
