/** Files of a model by their path: chosen or dropped ones, stored ones, or the built-in one. */

import { models, SetunError, type StoredModel } from "setun";
import storyModel from "../../node_modules/setun/model/stories.safetensors?url";
import { type Choice, sameModel } from "../current-model.js";
import { choiceOf } from "../picker/entries.js";
import type { Files } from "./checkpoint.js";

/** Limits of what is dropped, which may be a whole disk. */
const MAX_DEPTH = 4;
const MAX_FILES = 10_000;

/**
 * Files of a model that the page has chosen.
 *
 * @throws {SetunError} `not-found` for one that is not stored in this browser.
 */
export async function modelFiles(choice: Choice): Promise<Files> {
  const { source } = choice;
  if (source === undefined) return new Map([["stories.safetensors", await fetched(storyModel)]]);
  if (typeof source === "string") return storedFiles(choice);
  const items = [...(source as Iterable<File | FileSystemEntry>)];
  return items.every((item) => item instanceof File)
    ? filesByPath(items)
    : entryFiles(items as FileSystemEntry[]);
}

function filesByPath(files: readonly File[]): Files {
  return new Map(files.map((file) => [file.webkitRelativePath || file.name, file]));
}

async function fetched(url: string): Promise<Blob> {
  const response = await fetch(url);
  if (!response.ok) throw new SetunError("network", `${url}: status ${response.status}`);
  return response.blob();
}

async function entryFiles(
  entries: readonly FileSystemEntry[],
  depth = 0,
  files = new Map<string, Blob>(),
): Promise<Files> {
  for (const entry of entries) {
    if (files.size >= MAX_FILES) break;
    if (entry.isFile) files.set(entry.fullPath.slice(1), await fileOf(entry as FileSystemFileEntry));
    else if (depth < MAX_DEPTH)
      await entryFiles(await listed(entry as FileSystemDirectoryEntry), depth + 1, files);
  }
  return files;
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** Browsers list a folder in portions; an empty one is the end. */
async function listed(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (portion.length === 0 || all.length >= MAX_FILES) return all;
    all.push(...portion);
  }
}

/** Files of the browser's store: `setun/models/HOST/OWNER/NAME/REVISION`. */
async function storedFiles(choice: Choice): Promise<Files> {
  const stored = (await models.list()).find((model) => model.complete && sameModel(choiceOf(model), choice));
  const root = await navigator.storage?.getDirectory?.().catch(() => undefined);
  const folder = stored && root && (await folderOf(stored, root));
  if (folder !== undefined) return folder;
  const advice = "load it under Models first, or choose its files";
  throw new SetunError("not-found", `${choice.name} is not stored in this browser; ${advice}`);
}

async function folderOf(
  { name, revision }: StoredModel,
  root: FileSystemDirectoryHandle,
): Promise<Files | undefined> {
  try {
    const store = await (await root.getDirectoryHandle("setun")).getDirectoryHandle("models");
    for await (const folder of below(store, 4)) {
      const text = await (await (await folder.getFileHandle("manifest.json")).getFile())
        .text()
        .catch(() => "{}");
      const manifest = JSON.parse(text);
      if (manifest.model === name && manifest.revision === revision) return allFiles(folder, "");
    }
  } catch (error) {
    // Without such a folder the browser keeps its files elsewhere.
    if (!(error instanceof DOMException)) throw error;
  }
  return undefined;
}

/** Folders some levels below. */
async function* below(
  folder: FileSystemDirectoryHandle,
  levels: number,
): AsyncGenerator<FileSystemDirectoryHandle> {
  if (levels === 0) return yield folder;
  for await (const handle of folder.values()) {
    if (handle.kind === "directory") yield* below(handle as FileSystemDirectoryHandle, levels - 1);
  }
}

async function allFiles(
  folder: FileSystemDirectoryHandle,
  path: string,
  files = new Map<string, Blob>(),
): Promise<Files> {
  for await (const handle of folder.values()) {
    if (handle.kind === "file")
      files.set(path + handle.name, await (handle as FileSystemFileHandle).getFile());
    else await allFiles(handle as FileSystemDirectoryHandle, `${path}${handle.name}/`, files);
  }
  return files;
}
