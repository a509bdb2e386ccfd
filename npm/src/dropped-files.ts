/** Files and folders from drag and drop, file inputs and handles. */

/** Limits of depth and number of files, since a dropped folder may be a whole disk. */
const MAX_DEPTH = 4;
const MAX_FILES = 10_000;

/** Files and folders of a drop event. */
export type DroppedItems = DataTransferItemList | FileSystemEntry | Iterable<FileSystemEntry>;

/** Dropped files by path, and the name of their folder if there is one. */
export interface DroppedFolder {
  readonly folder: string;
  readonly blobs: ReadonlyMap<string, Blob>;
}

/** Whether a value is a handle of the File System API. */
export function isHandle(value: object): value is FileSystemFileHandle | FileSystemDirectoryHandle {
  return "kind" in value && ("getFile" in value || "getDirectoryHandle" in value);
}

/** Whether a value is an entry of a drop event. */
export function isEntry(value: unknown): value is FileSystemEntry {
  return typeof value === "object" && value !== null && "isDirectory" in value && "fullPath" in value;
}

/** Whether a value is an item of `dataTransfer.items`. */
export function isItem(value: unknown): value is DataTransferItem {
  return typeof value === "object" && value !== null && "getAsFile" in value;
}

/** The entries of items. Items are invalid after their event, so this is synchronous. */
export function entriesOf(items: Iterable<DataTransferItem | FileSystemEntry>): (FileSystemEntry | File)[] {
  return [...items].flatMap((item) => {
    if (isEntry(item)) return [item];
    return item.webkitGetAsEntry?.() ?? item.getAsFile() ?? [];
  });
}

/** All files below some entries. */
export async function droppedFiles(entries: readonly (FileSystemEntry | File)[]): Promise<DroppedFolder> {
  const blobs = new Map<string, Blob>();
  const [only] = entries;
  if (entries.length === 1 && isEntry(only) && isFolder(only)) {
    await addFiles(await list(only), "", 1, blobs);
    return { folder: only.name, blobs };
  }
  await addFiles(entries, "", 0, blobs);
  return { folder: "", blobs };
}

async function addFiles(
  entries: readonly (FileSystemEntry | File)[],
  path: string,
  depth: number,
  blobs: Map<string, Blob>,
): Promise<void> {
  for (const entry of entries) {
    if (blobs.size >= MAX_FILES) return;
    if (!isEntry(entry)) {
      blobs.set(path + entry.name, entry);
    } else if (isFile(entry)) {
      blobs.set(path + entry.name, await new Promise<File>((resolve, reject) => entry.file(resolve, reject)));
    } else if (isFolder(entry) && depth < MAX_DEPTH) {
      await addFiles(await list(entry), `${path}${entry.name}/`, depth + 1, blobs);
    }
  }
}

/** Browsers list folders in batches; an empty batch is the end. */
async function list(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const entries: FileSystemEntry[] = [];
  for (;;) {
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (portion.length === 0 || entries.length >= MAX_FILES) return entries;
    entries.push(...portion);
  }
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
