/** Names of models on a hub: `hf:owner/name`, `hf:owner/name@revision`, `hf:owner/name:FILE`. */

import { SetunError } from "./errors.js";
import { isModelFile } from "./model-names.js";

/** What a name of a hub begins with. */
export const HUB_PREFIX = "hf:";

/** The hub that is asked where none is named. */
export const DEFAULT_ENDPOINT = "https://huggingface.co";

/** A repository of a hub, or one file of it. */
export interface HubSource {
  readonly kind: "hub";
  /** `file` where the name says which file is meant; of a folder the hub's list decides what is read. */
  readonly layout: "folder" | "file";
  /** What the model is reported by; of a file its name in the repository. */
  readonly name: string;
  /** `owner/name` */
  readonly model: string;
  /** A branch, a tag or a commit; `main` where it is missing. */
  readonly revision?: string;
  /** The file of it that is meant. */
  readonly file?: string;
  /** Address of the hub, without a slash at its end. */
  readonly endpoint: string;
  /** Sent to the endpoint alone. */
  readonly token?: string;
}

/** Where a hub is, and who asks. */
export interface HubOptions {
  readonly endpoint?: string | undefined;
  readonly token?: string | undefined;
}

const EXPECTED = "hf:owner/name, hf:owner/name@revision or hf:owner/name:FILE";
const MOST_LETTERS = 96;
const DEVICES = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i;

/** True for what {@link parseHubName} reads. */
export function isHubName(text: string): boolean {
  return text.startsWith(HUB_PREFIX);
}

/**
 * Takes a name of a hub apart.
 *
 * @throws {SetunError} `bad-option` if it is none, or the endpoint is no address.
 */
export function parseHubName(text: string, { endpoint, token }: HubOptions = {}): HubSource {
  const [path, file] = splitOnce(text.slice(HUB_PREFIX.length), ":");
  const [model, revision] = splitOnce(path, "@");
  const parts = model.split("/");
  const isName = parts.length === 2 && parts.every(isPlainPart);
  if (!isName || !isRevision(revision) || !(file === undefined || isSafeFile(file))) {
    throw new SetunError("bad-option", `source: "${text}" is no name of a model; expected ${EXPECTED}`);
  }
  if (file !== undefined && !isModelFile(file)) {
    throw new SetunError(
      "bad-option",
      `source: "${text}": expected a .safetensors, .gguf or .setun file behind the colon`,
    );
  }
  return {
    kind: "hub",
    layout: file === undefined ? "folder" : "file",
    name: file ?? parts[1] ?? "",
    model,
    endpoint: hubAddress(endpoint),
    ...(revision !== undefined && { revision }),
    ...(file !== undefined && { file }),
    ...(token !== undefined && { token }),
  };
}

/** True for a part of a name as it is, which is a folder on any system too. */
export function isPlainPart(text: string): boolean {
  const letters = /^[A-Za-z0-9_-]([A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
  return text.length <= MOST_LETTERS && letters.test(text) && !DEVICES.test(text);
}

/** True for a file's name that stays in its folder, on any system, and is none of the registry's own. */
export function isSafeFile(name: string): boolean {
  const parts = name.split("/");
  const isOwn = name === "manifest.json" || /\.(part|chunks|tmp)$/.test(name);
  return parts.length <= 4 && parts.every(isSafePart) && !isOwn;
}

function isSafePart(part: string): boolean {
  const isShort = part.length > 0 && new TextEncoder().encode(part).length <= 2 * MOST_LETTERS;
  return isShort && !/^\.|[. ]$|[\p{Cc}\\:*?"<>|]/u.test(part) && !DEVICES.test(part);
}

function isRevision(revision: string | undefined): boolean {
  return revision === undefined || /^[^\p{Cc}]+$/u.test(revision);
}

function hubAddress(endpoint = DEFAULT_ENDPOINT): string {
  try {
    const { protocol, href } = new URL(endpoint);
    if (protocol === "https:" || protocol === "http:") return href.replace(/\/+$/, "");
  } catch {
    // Said below.
  }
  throw new SetunError("bad-option", `endpoint: "${endpoint}" is not the address of a hub`);
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}
