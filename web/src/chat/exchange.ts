/** Conversations as a JSON file. */

import { FORMATS, type Message, ROLES, type Thread } from "./thread.js";

const KIND = "setun-conversations";
const VERSION = 1;

/** The file's text. */
export function toJson(threads: readonly Thread[]): string {
  return `${JSON.stringify({ kind: KIND, version: VERSION, threads }, undefined, 2)}\n`;
}

/**
 * The conversations of a file, under new ids, so that none replaces one that is there.
 *
 * Throws an error that says where the file differs.
 */
export function fromJson(text: string): Thread[] {
  const file = record("the file", parsed(text));
  if (file.kind !== KIND) throw differs("kind", `"${KIND}"`, file.kind);
  if (file.version !== VERSION) throw differs("version", String(VERSION), file.version);
  return list("threads", file.threads).map((each, at) => thread(`threads[${at}]`, each));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The file is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function thread(where: string, value: unknown): Thread {
  const given = record(where, value);
  const messages: Message[] = [];
  const ids = new Map<string, string>();
  for (const [at, each] of list(`${where}.messages`, given.messages).entries()) {
    messages.push(message(`${where}.messages[${at}]`, each, ids));
  }
  const { leaf } = given;
  const shown = leaf === null ? null : ids.get(string(`${where}.leaf`, leaf));
  if (shown === undefined) throw differs(`${where}.leaf`, "the id of a message", leaf);
  return {
    id: crypto.randomUUID(),
    title: string(`${where}.title`, given.title),
    system: string(`${where}.system`, given.system),
    format: oneOf(`${where}.format`, FORMATS, given.format),
    updated: number(`${where}.updated`, given.updated),
    leaf: shown,
    messages,
  };
}

/** A message under a new id. `ids` has the new ids of those before it. */
function message(where: string, value: unknown, ids: Map<string, string>): Message {
  const given = record(where, value);
  const id = string(`${where}.id`, given.id);
  if (ids.has(id)) throw differs(`${where}.id`, "an id of its own", id);
  const parent = given.parent === null ? null : ids.get(string(`${where}.parent`, given.parent));
  if (parent === undefined) throw differs(`${where}.parent`, "the id of an earlier message", given.parent);
  const fresh = crypto.randomUUID();
  ids.set(id, fresh);
  return {
    id: fresh,
    parent,
    role: oneOf(`${where}.role`, ROLES, given.role),
    content: string(`${where}.content`, given.content),
    ...(given.reasoning !== undefined && { reasoning: string(`${where}.reasoning`, given.reasoning) }),
    ...(given.reasoningSeconds !== undefined && {
      reasoningSeconds: number(`${where}.reasoningSeconds`, given.reasoningSeconds),
    }),
    ...(given.writer !== undefined && { writer: string(`${where}.writer`, given.writer) }),
    ...(given.note !== undefined && { note: string(`${where}.note`, given.note) }),
  };
}

function record(where: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw differs(where, "an object", value);
  return value as Record<string, unknown>;
}

function list(where: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw differs(where, "a list", value);
  return value;
}

function string(where: string, value: unknown): string {
  if (typeof value !== "string") throw differs(where, "a text", value);
  return value;
}

function number(where: string, value: unknown): number {
  if (typeof value !== "number") throw differs(where, "a number", value);
  return value;
}

function oneOf<Name extends string>(where: string, names: readonly Name[], value: unknown): Name {
  const found = names.find((name) => name === value);
  if (found === undefined) throw differs(where, names.map((name) => `"${name}"`).join(" or "), value);
  return found;
}

function differs(where: string, expected: string, found: unknown): Error {
  const shown = JSON.stringify(found) ?? "nothing";
  return new Error(`${where}: expected ${expected}, found ${shown.slice(0, 60)}`);
}
