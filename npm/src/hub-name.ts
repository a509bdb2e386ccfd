/** Hub names: `hf:owner/name`, `hf:owner/name@revision`, `hf:owner/name:FILE`. */

import { SetunError } from "./errors.js";
import { isModelFile } from "./model-layout.js";
import { isSafeFile, isSafeFolderName, splitOnce } from "./store/names.js";

/** Prefix of Hub names. */
export const HUB_PREFIX = "hf:";

/** Default Hub. */
export const DEFAULT_ENDPOINT = "https://huggingface.co";

/** A Hub repository, or one file of it. */
export interface HubSource {
  readonly kind: "hub";
  /** `file` if the name has a file; else the Hub's list decides. */
  readonly layout: "folder" | "file";
  /** Reported name of the model; of a file its name in the repository. */
  readonly name: string;
  /** `owner/name` */
  readonly model: string;
  /** A branch, a tag or a commit. Default: `main`. */
  readonly revision?: string;
  /** The requested file. */
  readonly file?: string;
  /** URL of the Hub without a final slash. */
  readonly endpoint: string;
  /** Access token, sent to the endpoint only. */
  readonly token?: string;
}

/** Endpoint and access token. */
export interface HubOptions {
  readonly endpoint?: string | undefined;
  readonly token?: string | undefined;
}

const EXPECTED = "hf:owner/name, hf:owner/name@revision or hf:owner/name:FILE";

/** Whether {@link parseHubName} can read a text. */
export function isHubName(text: string): boolean {
  return text.startsWith(HUB_PREFIX);
}

/**
 * Parses a Hub name.
 *
 * @throws {SetunError} `bad-option` for any other text, or if the endpoint is no URL.
 */
export function parseHubName(text: string, { endpoint, token }: HubOptions = {}): HubSource {
  const [path, file] = splitOnce(text.slice(HUB_PREFIX.length), ":");
  const [model, revision] = splitOnce(path, "@");
  const parts = model.split("/");
  const isName = parts.length === 2 && parts.every(isSafeFolderName);
  if (!isName || !isRevision(revision) || !(file === undefined || isSafeFile(file))) {
    throw new SetunError("bad-option", `source: "${text}" is no Hub name; expected ${EXPECTED}`);
  }
  if (file !== undefined && !isModelFile(file)) {
    throw new SetunError(
      "bad-option",
      `source: "${text}": expected a .safetensors, .gguf or .setun file after the colon`,
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
    // The error follows.
  }
  throw new SetunError("bad-option", `endpoint: "${endpoint}" is not a URL`);
}
