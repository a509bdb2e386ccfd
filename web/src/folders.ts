/** Folders that the user drops on the page or chooses. */

import type { Choice } from "./current-model.js";

/** What a dropped folder, or dropped files, hold; `undefined` if nothing. Must be called while the event is handled. */
export async function droppedModel(data: DataTransfer): Promise<Choice | undefined> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const [only] = entries;
  if (only === undefined) return chosenModel(data.files);
  if (entries.length === 1 && isFolder(only))
    return choice(only.name, await filesUnder(await list(only), ""));
  return choice(only.name, await filesUnder(entries, ""));
}

/** The folder that a file input holds. */
export function chosenModel(files: FileList): Choice | undefined {
  const [first] = files;
  if (first === undefined) return undefined;
  const folder = first.webkitRelativePath.split("/")[0] || first.name;
  return { name: folder, source: [...files] };
}

function choice(name: string, files: Record<string, File>): Choice {
  return { name, source: files };
}

async function filesUnder(entries: FileSystemEntry[], path: string): Promise<Record<string, File>> {
  const files: Record<string, File> = {};
  for (const entry of entries) {
    if (isFolder(entry)) Object.assign(files, await filesUnder(await list(entry), `${path}${entry.name}/`));
    else if (isFile(entry))
      files[path + entry.name] = await new Promise((resolve, reject) => entry.file(resolve, reject));
  }
  return files;
}

/** Browsers list folders in portions; an empty one is the end. */
async function list(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const entries: FileSystemEntry[] = [];
  for (;;) {
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (portion.length === 0) return entries;
    entries.push(...portion);
  }
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
