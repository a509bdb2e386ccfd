/** The chat: conversations, and the model that answers. */

import type { TextDelta } from "setun";
import type { Activity } from "../activity.js";
import { button, element, saveFile } from "../elements.js";
import { explain } from "../explain.js";
import { fromJson, toJson } from "./exchange.js";
import { MessageLog } from "./message-log.js";
import { usedFormat } from "./prompt.js";
import {
  add,
  FORMATS,
  forkAt,
  type Message,
  newThread,
  path,
  remove,
  select,
  selectNewest,
  type Thread,
  versions,
} from "./thread.js";
import { ThreadList } from "./thread-list.js";
import { openThreads, type ThreadStore } from "./thread-store.js";
import type { Writer } from "./writer.js";

/** Interval of saving while an answer is written. */
const SAVE_MS = 1000;

/** Tells the page's other tabs that conversations have changed. */
const CHANNEL = "setun-threads";

/** Shows the tokens of an answer. `begin` begins another version of it with these. */
export type StepsView = (steps: readonly TextDelta[], begin: (steps: TextDelta[]) => void) => HTMLElement;

/** The view of conversations. */
export class Chat {
  readonly #writer: Writer;
  /** The tokens of answers that were written here with log-probabilities. */
  readonly #steps = new Map<string, TextDelta[]>();
  readonly #activity: Activity;
  readonly #store: ThreadStore;
  readonly #tabs = new BroadcastChannel(CHANNEL);
  readonly #list: ThreadList;
  readonly #log: MessageLog;
  readonly #field = element("message", HTMLTextAreaElement);
  readonly #title = element("thread-title", HTMLInputElement);
  readonly #system = element("system", HTMLTextAreaElement);
  readonly #format = element("chat-format", HTMLSelectElement);
  readonly #status = element("chat-status", HTMLElement);
  #threads: Thread[] = [];
  #thread = newThread();
  /** Whether the last message on the page is being written. */
  #isWriting = false;

  static async open(writer: Writer, activity: Activity, showSteps?: StepsView): Promise<Chat> {
    const chat = new Chat(writer, activity, await openThreads(), showSteps);
    await chat.#reload();
    return chat;
  }

  private constructor(
    writer: Writer,
    activity: Activity,
    store: ThreadStore,
    showSteps: StepsView | undefined,
  ) {
    this.#writer = writer;
    this.#activity = activity;
    this.#store = store;
    this.#list = new ThreadList({
      open: (thread) => this.#open(thread),
      create: () => this.#open(newThread(), true),
      exportAll: () => saveFile("conversations.json", "application/json", toJson(this.#threads)),
      importFile: (file) => void this.#import(file),
    });
    this.#log = new MessageLog(
      {
        edit: (message, content) => this.#edit(message, content),
        retry: ({ parent }) => this.#answer(parent),
        fork: (message) => this.#open(forkAt(this.#thread, message), true, true),
        select: (message) => this.#change(() => select(this.#thread, message)),
        tokensOf: ({ id, parent }) => {
          const steps = this.#steps.get(id);
          return steps && showSteps?.(steps, (begun) => this.#answer(parent, begun));
        },
      },
      (text) => this.#say(text),
    );
    this.#listen();
    // On a narrow screen the list would stand before the conversation.
    element("thread-panel", HTMLDetailsElement).open = matchMedia("(min-width: 52rem)").matches;
    writer.listen(() => this.#show());
    if (!store.isLasting)
      this.#report(
        "idle",
        "This browser keeps no data here: conversations end with the tab. Export them to keep them.",
      );
  }

  /** Sends what is in the field. */
  send(): void {
    const text = this.#field.value.trim();
    this.#field.value = "";
    if (text === "") this.#field.focus();
    else this.#say(text);
  }

  /** Begins a conversation with a question; without one, makes the model ready for it. */
  async ask(text: string): Promise<void> {
    await this.#activity.stop();
    if (this.#thread.messages.length > 0) this.#thread = newThread();
    this.#report("idle", "");
    this.#show();
    if (text === "") this.#prepare();
    else this.#say(text);
    this.#field.focus();
  }

  #listen(): void {
    this.#title.addEventListener("change", () => this.#set("title", this.#title.value.trim()));
    // What is being written stays when the view is shown anew.
    this.#system.addEventListener("input", () => (this.#thread.system = this.#system.value));
    this.#system.addEventListener("change", () => this.#set("system", this.#system.value));
    this.#format.addEventListener("change", () =>
      this.#set("format", FORMATS.find((each) => each === this.#format.value) ?? "auto"),
    );
    element("delete-thread", HTMLButtonElement).addEventListener("click", () => void this.#delete());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#field.form?.requestSubmit();
    });
    this.#tabs.addEventListener("message", () => {
      if (!this.#activity.isRunning) void this.#reload();
    });
  }

  #set<Name extends "title" | "system" | "format">(name: Name, value: Thread[Name]): void {
    this.#thread[name] = value;
    this.#show();
    void this.#save();
  }

  /** Reads the conversations; the one that is shown stays. */
  async #reload(): Promise<void> {
    this.#threads = await this.#store.all();
    const same = this.#threads.find(({ id }) => id === this.#thread.id);
    if (same !== undefined) this.#thread = same;
    else if (this.#thread.messages.length === 0) this.#thread = this.#threads[0] ?? this.#thread;
    this.#show();
  }

  #open(thread: Thread, isNew = false, isSaved = false): void {
    void this.#activity.stop().then(async () => {
      this.#thread = thread;
      if (isSaved) await this.#save();
      this.#report("idle", "");
      this.#show();
      if (isNew) this.#field.focus();
    });
  }

  /** Changes the conversation, unless it is being written. */
  #change(act: () => void): void {
    if (this.#activity.isRunning) return;
    act();
    this.#show();
    void this.#save();
  }

  #say(text: string): void {
    if (!this.#activity.isRunning) this.#answer(add(this.#thread, this.#thread.leaf, "user", text).id);
  }

  #edit(message: Message, content: string): boolean {
    if (this.#activity.isRunning) {
      this.#report("running", "Your changes are kept. Send them when this answer has ended.");
      return false;
    }
    if (content.trim() === "" || content === message.content) return true;
    const version = () => add(this.#thread, message.parent, message.role, content);
    if (message.role === "user") this.#answer(version().id);
    else this.#change(version);
    return true;
  }

  /** Lets the model answer the message with the id `parent`, or continue an answer with this beginning. */
  #answer(parent: string | null, begun: readonly TextDelta[] = []): void {
    if (this.#activity.isRunning) return;
    this.#thread.leaf = parent;
    this.#show();
    this.#activity.start(async (signal) => {
      await this.#save();
      try {
        await this.#write(parent, begun, signal);
      } catch (error) {
        this.#failed(error, signal, () => this.#answer(parent, begun));
        selectNewest(this.#thread);
      }
      this.#isWriting = false;
      this.#show();
      this.#log.showEnd();
      await this.#save();
    });
  }

  #prepare(): void {
    if (this.#activity.isRunning) return;
    this.#activity.start(async (signal) => {
      try {
        await this.#writer.load?.({ signal, report: (state, words) => this.#report(state, words) });
        this.#report("done", `${this.#writer.name} is ready.`);
      } catch (error) {
        this.#failed(error, signal, () => this.#prepare());
      }
    });
  }

  /** Says why something ended early, and offers it again. */
  #failed(error: unknown, signal: AbortSignal, again: () => void): void {
    const isStopped = signal.aborted && error === signal.reason;
    this.#report(isStopped ? "idle" : "failed", isStopped ? "Stopped while loading." : explain(error));
    this.#status.append(" ", button("Try again", again));
  }

  async #write(parent: string | null, begun: readonly TextDelta[], signal: AbortSignal): Promise<void> {
    const thread = this.#thread;
    const beginning = begun.map(({ text }) => text).join("");
    const written = await this.#writer.start({
      conversation: { system: thread.system, messages: path(thread), begun: beginning },
      format: thread.format,
      version: versions(thread, { parent, role: "assistant" }).length,
      signal,
      report: (state, words) => this.#report(state, words),
    });
    const answer = add(thread, parent, "assistant", beginning);
    answer.writer = this.#writer.name;
    const view = this.#log.append(thread, answer, this.#writer.name);
    this.#isWriting = true;
    view.isBusy = true;
    const stop = () => written.stop();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const steps: TextDelta[] = [...begun];
    try {
      let savedAt = performance.now();
      let thinkingSince: number | undefined;
      for await (const step of written) {
        if (step.logprob !== undefined && step.reasoning === undefined) steps.push(step);
        if (step.reasoning) {
          thinkingSince ??= performance.now();
          answer.reasoning = (answer.reasoning ?? "") + step.reasoning;
        }
        if (thinkingSince !== undefined && answer.content === "")
          answer.reasoningSeconds = (performance.now() - thinkingSince) / 1000;
        answer.content += step.text;
        view.update();
        if (performance.now() - savedAt < SAVE_MS) continue;
        savedAt = performance.now();
        void this.#save();
      }
      answer.note = await written.note;
      this.#report("done", "");
    } finally {
      if (steps.length > 0) this.#steps.set(answer.id, steps);
      if (answer.content === "" && !answer.reasoning) {
        remove(thread, answer, parent);
        this.#report("idle", "The model said nothing.");
      }
    }
  }

  async #import(file: File): Promise<void> {
    try {
      const threads = fromJson(await file.text());
      for (const thread of threads) await this.#store.put(thread);
      await this.#reload();
      this.#tabs.postMessage("changed");
      this.#report(
        "idle",
        `Imported ${threads.length} ${threads.length === 1 ? "conversation" : "conversations"}.`,
      );
    } catch (error) {
      this.#report("failed", `${file.name}: ${explain(error)}`);
    }
  }

  async #delete(): Promise<void> {
    await this.#activity.stop();
    const thread = this.#thread;
    await this.#store.remove(thread.id);
    this.#thread = newThread();
    await this.#reload();
    this.#tabs.postMessage("changed");
    this.#report("idle", `Deleted “${thread.title || "Untitled"}”.`);
    this.#status.append(
      " ",
      button("Undo", () => this.#open(thread, false, true)),
    );
  }

  async #save(): Promise<void> {
    const thread = this.#thread;
    if (thread.messages.length === 0) return;
    if (!this.#threads.includes(thread)) this.#threads.unshift(thread);
    try {
      await this.#store.put(thread);
      this.#tabs.postMessage("changed");
    } catch (error) {
      this.#report("failed", `The conversation could not be saved: ${explain(error)}`);
    }
    this.#list.show(this.#threads, this.#thread);
  }

  #show(): void {
    const thread = this.#thread;
    const hasTemplate = this.#writer.hasChatTemplate;
    const format = usedFormat(thread.format, hasTemplate);
    this.#list.show(this.#threads, thread);
    this.#title.value = thread.title;
    this.#system.value = thread.system;
    this.#format.value = thread.format;
    element("system-prompt", HTMLElement).hidden = format === "together";
    element("chat-notice", HTMLElement).hidden = hasTemplate;
    element("delete-thread", HTMLButtonElement).disabled = thread.messages.length === 0;
    if (!this.#isWriting) this.#log.show(thread, this.#writer.name, format !== "together");
  }

  #report(state: string, words: string): void {
    this.#status.dataset.state = state;
    this.#status.textContent = words;
  }
}
