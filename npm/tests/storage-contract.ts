/** The storage contract: cases that run on any storage, in Node and in browsers. */

import type { PartialFile, Storage } from "../src/store/storage.js";
import { canShareReads } from "../src/store/sync-files.js";

/** A case throws if the contract is violated. `folder` is its own and does not exist yet. */
export type Case = (storage: Storage, folder: string) => Promise<void>;

const SUBJECT = '{"format":1,"bytes":30,"chunk_bytes":10,"identity":null,"sha256":null}';
const line = (chunk: number) => `{"chunk":[${chunk},"${String(chunk).repeat(64)}"]}`;

/** Byte `i` is `from + i`. */
const bytes = (from: number, count: number) => Uint8Array.from({ length: count }, (_, i) => (from + i) % 256);

function same(found: unknown, expected: unknown, what: string): void {
  const text = (value: unknown) =>
    JSON.stringify(value instanceof Uint8Array ? [...value] : value) ?? "undefined";
  if (text(found) !== text(expected)) {
    throw new Error(`${what}: expected ${text(expected)}, found ${text(found)}`);
  }
}

async function rejects(work: Promise<unknown>, what: string): Promise<void> {
  const isRejected = await work.then(
    () => false,
    () => true,
  );
  same(isRejected, true, what);
}

async function content(storage: Storage, path: string): Promise<Uint8Array | undefined> {
  const file = await storage.open(path);
  return file && new Uint8Array(await file.arrayBuffer());
}

/** Opens a partial file while `work` runs. */
async function withPart<Result>(
  storage: Storage,
  path: string,
  work: (part: PartialFile) => Promise<Result>,
): Promise<Result> {
  const part = await storage.openPartial(path);
  try {
    return await work(part);
  } finally {
    await part.close();
  }
}

/** A file of 30 bytes with chunks 2 and 0. */
async function begin(storage: Storage, path: string): Promise<void> {
  await withPart(storage, path, async (part) => {
    await part.appendLine(SUBJECT);
    await part.writeChunk(20, bytes(20, 10), line(2));
    await part.writeChunk(0, bytes(0, 10), line(0));
  });
}

/** The complete file of {@link begin}. */
async function bring(storage: Storage, path: string): Promise<void> {
  await begin(storage, path);
  const part = await storage.openPartial(path);
  await part.writeChunk(10, bytes(10, 10), line(1));
  await part.finish();
}

export const CONTRACT: Readonly<Record<string, Case>> = {
  "texts are replaced and removed": async (storage, folder) => {
    const path = `${folder}/a/manifest.json`;
    same(await storage.readText(path), undefined, "before");
    await storage.writeText(`${path}.tmp`, "what a tab that was closed has left");
    await storage.writeText(path, "long ä text");
    same(await storage.readText(path), "long ä text", "written");
    await storage.writeText(path, "short");
    same(await storage.readText(path), "short", "replaced");
    await storage.remove(path);
    same(await storage.readText(path), undefined, "removed");
    await storage.remove(path);
    await storage.remove(`${folder}/nowhere/x`);
  },

  "folders are listed": async (storage, folder) => {
    same(await storage.list(folder), [], "before");
    for (const path of ["b.json", "a/x.json", "a/y.json", "a.json"]) {
      await storage.writeText(`${folder}/${path}`, path);
    }
    same(await storage.list(folder), ["a.json", "a/", "b.json"], "the folder");
    same(await storage.list(`${folder}/a`), ["x.json", "y.json"], "the one in it");
    same(await storage.list(`${folder}/a.json`), [], "a file");
    same(await storage.open(`${folder}/a`), undefined, "a folder as a file");
    same(await storage.readText(`${folder}/a`), undefined, "a folder as a text");
  },

  "folders are removed with all in them": async (storage, folder) => {
    await storage.writeText(`${folder}/a/x.json`, "x");
    await storage.writeText(`${folder}/ab`, "not in it");
    await bring(storage, `${folder}/a/b/whole`);
    await begin(storage, `${folder}/a/b/part`);
    await storage.remove(`${folder}/a`);
    same(await storage.list(folder), ["ab"], "left");
    same(await storage.open(`${folder}/a/b/whole`), undefined, "whole file");
    await withPart(storage, `${folder}/a/b/part`, async (part) => same(part.lines, [], "part"));
  },

  "names keep their letters": async (storage, folder) => {
    for (const name of ["a b%20ä#+&.json", "(x)'!~*.json"]) {
      await storage.writeText(`${folder}/${name}`, name);
      same(await storage.readText(`${folder}/${name}`), name, name);
      same(await storage.list(folder), [name], "list");
      await storage.remove(`${folder}/${name}`);
    }
    same(await storage.list(folder), [], "removed");
  },

  "paths do not leave the store": async (storage, folder) => {
    for (const path of [`${folder}/../x.json`, "../x.json", `${folder}/./x.json`]) {
      await rejects(storage.writeText(path, "x"), path);
      await rejects(storage.openPartial(path), path);
    }
  },

  "a file comes in chunks": async (storage, folder) => {
    const path = `${folder}/model`;
    await begin(storage, path);
    same(await storage.open(path), undefined, "before it is whole");
    await withPart(storage, path, async (part) => {
      same(part.lines, [SUBJECT, line(2), line(0)], "lines");
      same(await part.read(20, 30), bytes(20, 10), "chunk 2");
      same(await part.read(0, 10), bytes(0, 10), "chunk 0");
      same(await part.read(25, 99), bytes(25, 5), "to the end");
      same(await part.read(40, 50), new Uint8Array(), "behind the end");
      await part.writeChunk(10, bytes(10, 10), line(1));
      same(part.lines, [SUBJECT, line(2), line(0), line(1)], "lines with the last");
      same(await part.read(5, 25), bytes(5, 20), "across chunks");
      await part.finish();
    });
    same(await content(storage, path), bytes(0, 30), "whole");
    same(await storage.list(folder), ["model"], "beside it");
    same(await storage.readText(`${path}.chunks`), undefined, "journal");
  },

  "a whole file is read piece by piece": async (storage, folder) => {
    await bring(storage, `${folder}/model`);
    const file = await storage.open(`${folder}/model`);
    same(file?.size, 30, "size");
    const slice = file?.slice(5, 25);
    same(slice?.size, 20, "size of a slice");
    same(new Uint8Array((await slice?.arrayBuffer()) ?? []), bytes(5, 20), "slice");
    same(new Uint8Array((await slice?.slice(2, 4).arrayBuffer()) ?? []), bytes(7, 2), "slice of a slice");
    same(new Uint8Array((await file?.slice(28, 99).arrayBuffer()) ?? []), bytes(28, 2), "at the end");
    same(
      await file
        ?.slice(7, 3)
        .arrayBuffer()
        .then(({ byteLength }) => byteLength),
      0,
      "backwards",
    );
    const streamed = new Uint8Array(await new Response(file?.slice(1, 29).stream()).arrayBuffer());
    same(streamed, bytes(1, 28), "stream");
    same(await storage.readText(`${folder}/model`), new TextDecoder().decode(bytes(0, 30)), "as a text");
  },

  "a whole file is read by several readers, and removed while it is open": async (storage, folder) => {
    const path = `${folder}/model`;
    await bring(storage, path);
    const [file, other] = [await storage.openFile(path), await storage.openFile(path)];
    if (file === undefined || other === undefined) throw new Error("the file is there");
    const [first, second] = await Promise.all([file.read(5, 25), other.read(0, 10)]);
    same(first, bytes(5, 20), "the middle");
    same(second, bytes(0, 10), "another reader");
    same(await file.read(28, 99), bytes(28, 2), "at the end");
    same(await file.read(99, 101), new Uint8Array(), "behind the end");
    same(await storage.openFile(`${folder}/other`), undefined, "no file");
    await storage.remove(path);
    same(await storage.openFile(path), undefined, "a file that was removed");
    const read = await file.read(0, 10).then(
      () => "read",
      () => "refused",
    );
    // In memory its bytes stay.
    if (storage.kind === "opfs" && canShareReads()) same(read, "refused", "a read of a removed file");
  },

  "chunks may come at once": async (storage, folder) => {
    const path = `${folder}/model`;
    await withPart(storage, path, async (part) => {
      await part.appendLine(SUBJECT);
      await Promise.all(
        [2, 0, 1].map((chunk) => part.writeChunk(10 * chunk, bytes(10 * chunk, 10), line(chunk))),
      );
    });
    await withPart(storage, path, async (part) => {
      same([...part.lines].sort(), [line(0), line(1), line(2), SUBJECT], "lines");
      same(await part.read(0, 30), bytes(0, 30), "bytes");
    });
  },

  "a chunk that comes again replaces the first": async (storage, folder) => {
    await begin(storage, `${folder}/model`);
    await withPart(storage, `${folder}/model`, async (part) => {
      await part.writeChunk(0, bytes(100, 10), line(0));
      same(await part.read(0, 10), bytes(100, 10), "bytes");
      same(part.lines, [SUBJECT, line(2), line(0), line(0)], "lines");
    });
  },

  "the beginning of a chunk is kept, and replaced by the chunk": async (storage, folder) => {
    const path = `${folder}/model`;
    await begin(storage, path);
    const prefix = `{"prefix":[1,4,"${"1".repeat(64)}"]}`;
    await withPart(storage, path, (part) => part.writeChunk(10, bytes(10, 4), prefix));
    const part = await storage.openPartial(path);
    same(part.lines, [SUBJECT, line(2), line(0), prefix], "lines");
    same(await part.read(10, 14), bytes(10, 4), "the beginning");
    await part.writeChunk(10, bytes(10, 10), line(1));
    same(await part.read(0, 30), bytes(0, 30), "the chunk");
    await part.finish();
    same(await content(storage, path), bytes(0, 30), "the file");
  },

  "a journal is rewritten": async (storage, folder) => {
    await begin(storage, `${folder}/model`);
    await withPart(storage, `${folder}/model`, (part) => part.rewrite([SUBJECT, line(0)]));
    await withPart(storage, `${folder}/model`, async (part) => {
      same(part.lines, [SUBJECT, line(0)], "lines");
      same(await part.read(20, 30), bytes(20, 10), "bytes stay");
      await part.appendLine(line(1));
    });
    const text = await storage.readText(`${folder}/model.chunks`);
    same(text, `${SUBJECT}\n${line(0)}\n${line(1)}\n`, "its text");
  },

  "a line that was cut off does not count, nor does it harm the next": async (storage, folder) => {
    const path = `${folder}/model`;
    const whole = `${SUBJECT}\n${line(2)}\n`;
    for (const end of [line(0), line(0).slice(0, 20), '{"chunk"\n', "\0\0\0\n", `"${"x".repeat(5000)}"\n`]) {
      await begin(storage, path);
      await storage.writeText(`${path}.chunks`, whole + end);
      await withPart(storage, path, async (part) => {
        same(part.lines, [SUBJECT, line(2)], JSON.stringify(end));
        await part.appendLine(line(1));
      });
      same(await storage.readText(`${path}.chunks`), `${whole}${line(1)}\n`, "its text");
      await withPart(storage, path, (part) => part.clear());
    }
  },

  "bytes without a journal, and a journal without bytes, count for nothing": async (storage, folder) => {
    for (const gone of [".part", ".chunks"]) {
      await begin(storage, `${folder}/model`);
      await storage.remove(`${folder}/model${gone}`);
      await withPart(storage, `${folder}/model`, async (part) => {
        same(part.lines, [], `lines without ${gone}`);
        same(await part.read(0, 30), new Uint8Array(), `bytes without ${gone}`);
      });
    }
  },

  "a part is cleared": async (storage, folder) => {
    const path = `${folder}/model`;
    await begin(storage, path);
    await withPart(storage, path, async (part) => {
      await part.clear();
      same(part.lines, [], "lines");
      same(await part.read(0, 30), new Uint8Array(), "bytes");
      await part.appendLine(SUBJECT);
      await part.writeChunk(0, bytes(7, 5), line(0));
    });
    await withPart(storage, path, async (part) => {
      same(part.lines, [SUBJECT, line(0)], "new lines");
      same(await part.read(0, 30), bytes(7, 5), "new bytes");
    });
  },

  "a file takes the place of another, without its tail": async (storage, folder) => {
    const path = `${folder}/model`;
    await bring(storage, path);
    await storage.writeText(`${path}.chunks`, `${SUBJECT}\n`);
    const part = await storage.openPartial(path);
    same(part.lines, [], "lines of the other");
    same(await part.read(0, 30), new Uint8Array(), "bytes of the other");
    await part.appendLine(SUBJECT);
    await part.writeChunk(0, bytes(50, 10), line(0));
    await part.finish();
    same(await content(storage, path), bytes(50, 10), "bytes");
    await withPart(storage, path, async () => undefined);
    same(await content(storage, path), bytes(50, 10), "after a part that nothing came of");
  },

  "a file may be empty": async (storage, folder) => {
    const part = await storage.openPartial(`${folder}/empty`);
    await part.appendLine(SUBJECT);
    await part.finish();
    same(await content(storage, `${folder}/empty`), new Uint8Array(), "bytes");
  },
};
