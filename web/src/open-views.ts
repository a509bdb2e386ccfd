/** The views: each is made when it is first shown, and has its own action of the page's form. */

import type { Activity } from "./activity.js";
import type { Choice, CurrentModel } from "./current-model.js";
import { element } from "./elements.js";
import { explain } from "./explain.js";
import { Views } from "./views.js";

const VIEWS = ["story", "chat", "models", "benchmark", "parity", "explorer"] as const;

type View = (typeof VIEWS)[number];

/** What the views share. */
export interface Shared {
  readonly current: CurrentModel;
  readonly activity: Activity;
  choose(choice: Choice): void;
  /** Writes a story. */
  write(): void;
  /** Is called when the view of stories is shown. */
  openStory(): void;
}

/** What the page's own events do in the view that is shown. */
export interface OpenedViews {
  /** Shows the chat, and begins it with a question; without one, makes the model ready. */
  ask(question: string): void;
  submit(): void;
  /** Whether the view of stories is shown. */
  isStory(): boolean;
  /** Takes dropped files; `false` where they are the page's next model. */
  drop(choice: Choice): boolean;
}

/** Opens the view of the address. */
export function openViews({ current, activity, choose, write, openStory }: Shared): OpenedViews {
  const chat = once(async () => {
    const [{ Chat }, { LocalWriter }] = await Promise.all([
      import("./chat/chat.js"),
      import("./chat/local-writer.js"),
    ]);
    return Chat.open(new LocalWriter(current), activity);
  });
  const picker = once(async () => new (await import("./picker/picker.js")).Picker(current, activity, choose));
  const benchmark = once(
    async () => new (await import("./benchmark/benchmark.js")).Benchmark(current, activity),
  );
  const parity = once(async () => new (await import("./parity/parity.js")).Parity(activity));
  const explorer = once(async () => new (await import("./explorer/explorer.js")).Explorer(activity));
  const open: Record<View, (details: string) => Promise<unknown>> = {
    story: async () => openStory(),
    chat,
    models: async () => (await picker()).refresh(),
    benchmark: async (details) => (await benchmark()).showShared(details),
    parity,
    explorer,
  };
  const submit: Record<View, () => Promise<void>> = {
    story: async () => write(),
    chat: async () => (await chat()).send(),
    models: async () => (await picker()).lookUp(),
    benchmark: async () => (await benchmark()).run(),
    parity: async () => (await parity()).run(),
    explorer: async () => (await explorer()).open(current.choice),
  };
  const views = new Views(VIEWS);
  views.listen((view, details) => void open[view](details).catch(failed));
  views.start();
  return {
    ask: (question) => {
      location.hash = "#chat";
      void chat()
        .then((view) => view.ask(question))
        .catch(failed);
    },
    isStory: () => views.current === "story",
    submit: () => void submit[views.current]().catch(failed),
    drop: (choice) => {
      if (views.current !== "explorer") return false;
      void explorer()
        .then((view) => view.open(choice))
        .catch(failed);
      return true;
    },
  };
}

/** What `make` returns, made at the first call. */
function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** A part of the page did not arrive. */
function failed(error: unknown): void {
  const status = element("page-status", HTMLElement);
  status.hidden = false;
  status.textContent = `This part of the page cannot be opened: ${explain(error)}`;
}
