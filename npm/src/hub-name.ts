/** Names of models on a hub: `hf:owner/name`, `hf:owner/name@revision`, `hf:owner/name:FILE`. */

import { SetunError } from "./errors.js";
import { isModelFile } from "./model-layout.js";
import { isSafeFile, isSafeFolderName, splitOnce } from "./store/names.js";

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
  const isName = parts.length === 2 && parts.every(isSafeFolderName);
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
