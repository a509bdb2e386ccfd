/** Functions of the store tests that run in the page. */

/**
 * Loads a model and tells the story; `globalThis.phase` is that of the load. A failure is reported by its code, and another load must then succeed.
 * @param {{ source: any, prompt: string, options: object, load?: object }} story
 */
export async function tryStory({ source, prompt, options, load = {} }) {
  const { setun } = /** @type {any} */ (globalThis);
  /** @type {any[]} */
  const seen = [];
  try {
    const onProgress = (/** @type {any} */ step) => {
      seen.push(step);
      /** @type {any} */ (globalThis).phase = step.phase;
    };
    const model = await setun.load(source, { ...load, onProgress });
    const text = await model.generate(prompt, options).text();
    await model.dispose();
    return { text, progress: seen.at(-1), seen, warnings: model.info.warnings };
  } catch (thrown) {
    const error = /** @type {any} */ (thrown);
    if (!(error instanceof setun.SetunError)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** Begins to load and says how it ends in `globalThis.ended`; `globalThis.stop` aborts it. @param {{ source: string, load?: object }} task */
export function beginLoad({ source, load = {} }) {
  const all = /** @type {any} */ (globalThis);
  const controller = new AbortController();
  all.stop = () => controller.abort("stopped");
  all.ended = all.setun.load(source, { ...load, signal: controller.signal }).then(
    () => "loaded",
    (/** @type {any} */ thrown) => thrown?.code ?? thrown,
  );
}

/** Whether a load or a deletion waits for the lock of a model. */
export async function lockIsAwaited() {
  const { pending = [] } = await navigator.locks.query();
  return pending.some(({ name }) => name?.startsWith("setun:"));
}

/** All that the private file system has: sizes of files by path, and for `digests` their SHA-256. @param {boolean} digests */
export async function keptFiles(digests = false) {
  /** @type {Record<string, number | string>} */
  const found = {};
  /** @param {FileSystemDirectoryHandle} folder @param {string} path */
  const walk = async (folder, path) => {
    for await (const [name, handle] of /** @type {any} */ (folder).entries()) {
      if (handle.kind === "directory") await walk(handle, `${path}${name}/`);
      else found[path + name] = await describe(await handle.getFile());
    }
  };
  /** @param {File} file */
  const describe = async (file) => {
    if (!digests) return file.size;
    const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
    return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  await walk(await navigator.storage.getDirectory(), "");
  return found;
}

/** Removes one file behind the package's back: the first whose path ends so. @param {string} end */
export async function removeKept(end) {
  /** @param {FileSystemDirectoryHandle} folder @returns {Promise<boolean>} */
  const walk = async (folder) => {
    for await (const [name, handle] of /** @type {any} */ (folder).entries()) {
      if (handle.kind === "directory" && (await walk(handle))) return true;
      if (handle.kind === "file" && name.endsWith(end)) {
        await folder.removeEntry(name);
        return true;
      }
    }
    return false;
  };
  return walk(await navigator.storage.getDirectory());
}

/**
 * Damages one file behind the package's back, the first of a name: cuts it to `bytes`, or sets the byte at `at`.
 * @param {{ name: string, bytes?: number, at?: number, byte?: number }} damage
 */
export async function damageKept({ name: wanted, bytes, at = 0, byte = 0 }) {
  /** @param {FileSystemDirectoryHandle} folder @returns {Promise<FileSystemFileHandle | undefined>} */
  const find = async (folder) => {
    for await (const [name, handle] of /** @type {any} */ (folder).entries()) {
      const found = handle.kind === "directory" ? await find(handle) : name === wanted && handle;
      if (found) return found;
    }
    return undefined;
  };
  const file = await find(await navigator.storage.getDirectory());
  const writable = await file?.createWritable({ keepExistingData: true });
  if (bytes !== undefined) await writable?.truncate(bytes);
  else await writable?.write({ type: "write", position: at, data: Uint8Array.of(byte) });
  await writable?.close();
  return file !== undefined;
}

/** Sets a byte of a chunk that the Cache API has, or cuts the chunk to `bytes`. @param {{ at: number, bytes?: number }} damage */
export async function damageCached({ at, bytes }) {
  const cache = await caches.open("setun");
  for (const request of await cache.keys()) {
    const start = new URL(request.url).searchParams.get("start");
    const answer = start === "0" ? await cache.match(request) : undefined;
    if (answer === undefined) continue;
    const content = new Uint8Array(await answer.arrayBuffer());
    content[at] = /** @type {number} */ (content[at]) ^ 1;
    await cache.put(request, new Response(content.subarray(0, bytes), { headers: answer.headers }));
    return true;
  }
  return false;
}

/** Deletes all that is kept, as a page does it. */
export async function deleteAll() {
  const { models } = /** @type {any} */ (globalThis).setun;
  for (const model of await models.list()) await models.delete(model);
}
