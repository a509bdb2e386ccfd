/** What a worker file runs: a host for the page that started it, or a thread of such a host. */

import { openModel } from "./download/open-stored.js";
import { asSetunError, toWire } from "./errors.js";
import { grammarBuild } from "./grammar-build.js";
import { Host } from "./host.js";
import type { FromHost, ToHost } from "./protocol.js";
import type { WasmModule } from "./wasm.js";
import { compileFrom } from "./wasm-instance.js";

/** The part of a worker's global scope that is used; TypeScript's own types clash with the page's. */
interface WorkerScope {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
}

/** What a threaded build adds. */
export interface ThreadedBuild {
  /** Has the page start `count` more workers of this very file; each is sent a {@link ThreadMessage} first. */
  startThreads(count: number): Promise<void>;
  /** Makes this worker one of them. */
  joinPool(message: ThreadMessage): Promise<void>;
}

/** The first message to a worker that is to be a thread; only the generated code reads the rest of it. */
export interface ThreadMessage {
  readonly type: "setun-thread";
}

/** Serves one build. Called at the top of a worker file, before any message can arrive. */
export function serve(glue: WasmModule, code: URL, threaded?: ThreadedBuild): void {
  const scope = globalThis as unknown as WorkerScope;
  const send = (message: FromHost) => post(scope, message);
  const startThreads = threaded && ((count: number) => threaded.startThreads(count));
  const build = { glue, compile: () => compileFrom(code), ...(startThreads && { startThreads }) };
  const host = new Host({ build, openModel, grammars: grammarBuild }, send);
  scope.addEventListener("message", ({ data }: MessageEvent<ToHost | ThreadMessage>) => {
    if (data.type === "setun-thread") void threaded?.joinPool(data);
    else void host.receive(data);
  });
}

/** A message that cannot be cloned would otherwise be lost, and its reader wait for ever. */
function post(scope: WorkerScope, message: FromHost): void {
  try {
    scope.postMessage(message);
  } catch (thrown) {
    const error = { ...toWire(asSetunError(thrown)), cause: undefined };
    scope.postMessage({ type: "failed", id: message.id, error } satisfies FromHost);
  }
}
