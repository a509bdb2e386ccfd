/** Progress of a download for the tabs and workers that wait for it. */

import { type LoadProgress, type OnProgress, ProgressReporter } from "../load-progress.js";

/** A wait that users notice. */
const WAIT_MS = 100;

/** Tells others of a download's progress. */
export class SharedProgress {
  readonly #channel: BroadcastChannel;
  readonly #reporter: ProgressReporter;

  /** `model` as its lock names it. */
  constructor(model: string) {
    this.#channel = openChannel(model);
    this.#reporter = new ProgressReporter((progress) => this.#channel.postMessage(progress));
  }

  tell(progress: LoadProgress): void {
    this.#reporter.report(progress);
  }

  close(): void {
    this.#channel.close();
  }
}

/** Reports the phase `waiting` until the returned function is called. */
export function reportWait(model: string, file: string, onProgress: OnProgress): () => void {
  let channel: BroadcastChannel | undefined;
  const timer = setTimeout(() => {
    onProgress({ phase: "waiting", loadedBytes: 0, file });
    channel = openChannel(model);
    channel.onmessage = ({ data }: MessageEvent<LoadProgress>) => onProgress({ ...data, phase: "waiting" });
  }, WAIT_MS);
  return () => {
    clearTimeout(timer);
    channel?.close();
  };
}

function openChannel(model: string): BroadcastChannel {
  return new BroadcastChannel(`setun:${model}`);
}
