/** Fake files, folders, handles and entries of browsers. */

/** A file whose content is its name. */
const content = (name: string) => new File([name], name.split("/").at(-1) ?? name);

function missing(name: string, kind: string): never {
  throw new DOMException(`${name} is not here`, kind);
}

/** A handle of one file. */
export function fileHandle(path: string): FileSystemFileHandle {
  const file = content(path);
  return { kind: "file", name: file.name, getFile: async () => file } as never;
}

/** A handle of a folder with these paths. */
export function folderHandle(name: string, paths: readonly string[]): FileSystemDirectoryHandle {
  const below = (folder: string) =>
    paths.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1));
  const folders = [
    ...new Set(paths.filter((path) => path.includes("/")).map((path) => path.split("/")[0] ?? "")),
  ];
  const files = paths.filter((path) => !path.includes("/"));
  return {
    kind: "directory",
    name,
    async *entries() {
      for (const folder of folders) yield [folder, folderHandle(folder, below(folder))];
      for (const file of files) yield [file, fileHandle(file)];
    },
    getFileHandle: async (file: string) =>
      files.includes(file) ? fileHandle(file) : missing(file, "NotFoundError"),
    getDirectoryHandle: async (folder: string) =>
      folders.includes(folder) ? folderHandle(folder, below(folder)) : missing(folder, "NotFoundError"),
  } as never;
}

/** An entry of a dropped folder, listed in batches of two. */
export function folderEntry(name: string, paths: readonly string[], fullPath = `/${name}`): FileSystemEntry {
  const tops = [...new Set(paths.map((path) => path.split("/")[0] ?? ""))];
  const entries = tops.map((top) => {
    const below = paths
      .filter((path) => path.startsWith(`${top}/`))
      .map((path) => path.slice(top.length + 1));
    if (below.length > 0) return folderEntry(top, below, `${fullPath}/${top}`);
    const file = (resolve: (file: File) => void) => resolve(content(top));
    return { isFile: true, isDirectory: false, name: top, fullPath: `${fullPath}/${top}`, file };
  });
  const createReader = () => {
    let given = 0;
    return {
      readEntries: (resolve: (portion: unknown[]) => void) => {
        resolve(entries.slice(given, given + 2));
        given += 2;
      },
    };
  };
  return { isFile: false, isDirectory: true, name, fullPath, createReader } as never;
}
