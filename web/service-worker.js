/**
 * Service worker of the built page: it keeps the page's files, so that the page opens without a network, and adds the headers
 * of cross-origin isolation, which hosts of static files do not send and threads need.
 *
 * The build puts `SETUN_FILES` before it: a version, the files that are kept at once, and those that are kept when they are
 * first fetched, because a browser needs one WebAssembly build of several.
 */

import { addIsolationHeaders } from "setun/isolate";

const SCOPE = new URL("./", self.location.href);

/** Other pages may share the origin. */
const PREFIX = `setun-page ${SCOPE.pathname} `;
const CACHE = PREFIX + SETUN_FILES.version;

self.addEventListener("install", (event) => event.waitUntil(keepFirst()));
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));
self.addEventListener("message", (event) => {
  if (event.data === "keep-fetched") event.waitUntil(keepFetched());
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== SCOPE.origin || !url.pathname.startsWith(SCOPE.pathname))
    return;
  const name = url.pathname.slice(SCOPE.pathname.length) || "index.html";
  const isKept = [...SETUN_FILES.first, ...SETUN_FILES.later].includes(name);
  // Models on the page's own server, for example, are none of its files.
  if (isKept || request.destination !== "") event.respondWith(answer(event, isKept ? name : undefined));
});

async function keepFirst() {
  const cache = await caches.open(CACHE);
  // Not from the browser's cache, which may have a page of an earlier version.
  await cache.addAll(
    SETUN_FILES.first.map((name) => new Request(new URL(name, SCOPE), { cache: "no-cache" })),
  );
}

/** Drops earlier versions, after what they have of this one. */
async function takeOver() {
  const cache = await caches.open(CACHE);
  for (const key of await caches.keys()) {
    if (!key.startsWith(PREFIX) || key === CACHE) continue;
    const earlier = await caches.open(key);
    for (const name of SETUN_FILES.later) {
      const kept = await earlier.match(new URL(name, SCOPE));
      if (kept !== undefined) await cache.put(new URL(name, SCOPE), kept);
    }
    await caches.delete(key);
  }
  await self.clients.claim();
}

/** Keeps what the page fetched before this worker was there, as far as the browser's own cache has it. */
async function keepFetched() {
  const cache = await caches.open(CACHE);
  for (const name of SETUN_FILES.later) {
    const url = new URL(name, SCOPE);
    if (await cache.match(url)) continue;
    const fetched = { cache: "only-if-cached", mode: "same-origin" };
    const response = await fetch(url, fetched).catch(() => undefined);
    if (response?.ok) await cache.put(url, response);
  }
}

async function answer(event, name) {
  const { request } = event;
  const cache = await caches.open(CACHE);
  if (request.mode === "navigate") {
    // The newest page, where there is a network.
    const page = await fetch(request).catch(() => undefined);
    return isolated(page ?? (await cache.match(new URL("index.html", SCOPE))) ?? Response.error());
  }
  const kept = name && (await cache.match(new URL(name, SCOPE)));
  if (kept) return isolated(kept);
  const response = await fetch(request);
  if (name && response.status === 200) event.waitUntil(cache.put(new URL(name, SCOPE), response.clone()));
  return isolated(response);
}

/** Models come from servers that allow it, so nothing needs a laxer policy. */
function isolated(response) {
  return addIsolationHeaders(response, "require-corp");
}
