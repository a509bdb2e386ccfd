"use client";

import { useEffect, useState } from "react";
import { load } from "setun";

/** The model of this tab. It stays loaded while pages come and go. */
let loading;

const messageOf = ({ code, message }) => `${code}: ${message}`;

export default function Page() {
  const [model, setModel] = useState();
  const [text, setText] = useState("");
  const [status, setStatus] = useState("Loading…");
  const [isRunning, setIsRunning] = useState(false);

  useEffect(() => {
    loading ??= load();
    loading.then(
      (loaded) => {
        setModel(loaded);
        setStatus(`loaded ${loaded.info.build}`);
      },
      (error) => setStatus(messageOf(error)),
    );
  }, []);

  async function tell(event) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const options = { maxTokens: 40, temperature: 0.8, seed: Number(form.get("seed")) };
    setIsRunning(true);
    setText("");
    try {
      const generation = model.generate(form.get("prompt"), options);
      for await (const delta of generation) setText((before) => before + delta.text);
      const { finishReason, build } = await generation.result;
      setStatus(`finished: ${finishReason}, ${build}`);
    } catch (error) {
      setStatus(messageOf(error));
    }
    setIsRunning(false);
  }

  return (
    <main>
      <form onSubmit={tell}>
        <label>
          Beginning: <input name="prompt" defaultValue="Once upon a time" required />
        </label>
        <label>
          Seed: <input name="seed" type="number" min="0" defaultValue="11" />
        </label>
        <button type="submit" disabled={!model || isRunning}>
          Tell
        </button>
      </form>
      <p id="output">{text}</p>
      <p id="status" role="status">
        {status}
      </p>
    </main>
  );
}
