/** A conversation with `useChat`: answers stream, are stopped and are written again. */

import { useChat } from "@ai-sdk/react";

export function Chat({ transport }) {
  const { messages, sendMessage, regenerate, stop, status, error } = useChat({ transport });
  const isBusy = status === "submitted" || status === "streaming";
  const isAnswered = messages.at(-1)?.role === "assistant";

  function send(event) {
    event.preventDefault();
    const form = event.currentTarget;
    sendMessage({ text: new FormData(form).get("text") });
    form.reset();
  }

  return (
    <main data-status={status}>
      {messages.map(({ id, role, parts }) => (
        <p key={id} data-role={role} style={{ whiteSpace: "pre-wrap" }}>
          {parts.map((part) => (part.type === "text" ? part.text : "")).join("")}
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input name="text" aria-label="Message" required />
        <button type="submit" disabled={isBusy}>
          Send
        </button>
        <button type="button" onClick={() => stop()} disabled={!isBusy}>
          Stop
        </button>
        <button type="button" onClick={() => regenerate()} disabled={isBusy || !isAnswered}>
          Regenerate
        </button>
      </form>
    </main>
  );
}
