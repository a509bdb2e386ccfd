/** A conversation: a tree of messages, of which one path is shown. */

/** How messages become a prompt. */
export const FORMATS = ["auto", "template", "together", "transcript"] as const;
export type Format = (typeof FORMATS)[number];

export const ROLES = ["user", "assistant"] as const;
export type Role = (typeof ROLES)[number];

/** A message. Messages with the same parent are versions of one another. */
export interface Message {
  readonly id: string;
  /** The message before; `null` for the first. */
  readonly parent: string | null;
  readonly role: Role;
  content: string;
  /** What the model thought before an answer. */
  reasoning?: string;
  /** How long it thought. */
  reasoningSeconds?: number;
  /** Name of the model that wrote an answer. */
  writer?: string;
  /** Figures of an answer, in words. */
  note?: string;
}

/** A conversation as it is stored. */
export interface Thread {
  readonly id: string;
  title: string;
  system: string;
  format: Format;
  /** Time of the last change, in milliseconds. */
  updated: number;
  /** The last message of the path that is shown. */
  leaf: string | null;
  /** A parent comes before its children. */
  readonly messages: Message[];
}

/** Characters of a title made from a message. */
const TITLE_LENGTH = 48;

export function newThread(): Thread {
  const [id, updated] = [crypto.randomUUID(), Date.now()];
  return { id, title: "", system: "", format: "auto", updated, leaf: null, messages: [] };
}

/** The messages that are shown, the first one first. */
export function path(thread: Thread): Message[] {
  const byId = new Map(thread.messages.map((message) => [message.id, message]));
  const found: Message[] = [];
  for (let id = thread.leaf; id !== null; ) {
    const message = byId.get(id);
    if (message === undefined) break;
    found.push(message);
    id = message.parent;
  }
  return found.reverse();
}

/** Adds a message and shows it. The first one names the conversation. */
export function add(thread: Thread, parent: string | null, role: Role, content: string): Message {
  const message = { id: crypto.randomUUID(), parent, role, content };
  thread.messages.push(message);
  thread.leaf = message.id;
  if (thread.title === "" && role === "user") thread.title = titleOf(content);
  thread.updated = Date.now();
  return message;
}

/** Takes back a message that has no children, and shows `leaf`. */
export function remove(thread: Thread, message: Message, leaf: string | null): void {
  const at = thread.messages.indexOf(message);
  if (at >= 0) thread.messages.splice(at, 1);
  thread.leaf = leaf;
}

/** All versions of a message, the oldest first. */
export function versions(thread: Thread, { parent, role }: Pick<Message, "parent" | "role">): Message[] {
  return thread.messages.filter((each) => each.parent === parent && each.role === role);
}

/** Shows a message, and after it the newest messages. */
export function select(thread: Thread, message: Message): void {
  let leaf = message.id;
  for (const each of thread.messages) if (isBelow(thread, each, message.id)) leaf = each.id;
  thread.leaf = leaf;
}

/** Shows what comes after the last message that is shown, if there is something. */
export function selectNewest(thread: Thread): void {
  const last = path(thread).at(-1);
  if (last !== undefined) select(thread, last);
}

/** A conversation of its own with the path up to a message. */
export function forkAt(thread: Thread, message: Message): Thread {
  const whole = path(thread);
  const kept = whole.slice(0, whole.indexOf(message) + 1);
  const fork = { ...newThread(), title: thread.title, system: thread.system, format: thread.format };
  for (const { id, parent, ...rest } of kept)
    Object.assign(add(fork, fork.leaf, rest.role, rest.content), rest);
  return fork;
}

function isBelow(thread: Thread, message: Message, ancestor: string): boolean {
  const byId = new Map(thread.messages.map((each) => [each.id, each]));
  for (let id = message.parent; id !== null; id = byId.get(id)?.parent ?? null) {
    if (id === ancestor) return true;
  }
  return false;
}

function titleOf(content: string): string {
  const line = plainText(content).trim().replace(/\s+/g, " ");
  return line.length <= TITLE_LENGTH ? line : `${line.slice(0, TITLE_LENGTH - 1).trimEnd()}…`;
}

/** A text without Markdown's marks. */
function plainText(content: string): string {
  return content
    .replace(/^\s*(?:```|~~~).*$/gm, "")
    .replace(/^\s*(?:#{1,6}|>|[-*+]|\d+[.)])\s+/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\*\*|__|~~|`/g, "")
    .replace(/(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)/g, "$2");
}
