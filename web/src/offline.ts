/** The service worker, which keeps the page's files and isolates the page where its server does not. */

import { load } from "setun";
import { isolate } from "setun/isolate";
import { readBackend } from "./controls.js";
import { savesData } from "./download-time.js";
import { element } from "./elements.js";

/** Time after which a page that nobody uses fetches what a model needs. */
const IDLE_MS = 3000;

/** How often the page looks whether what a run fetched is kept. */
const MAX_LOOKS = 20;

/** On the first visit nobody keeps what is fetched first: a story is not to wait for the service worker. */
let isFirstVisit = false;

let registered: Promise<ServiceWorkerRegistration | undefined> | undefined;

/**
 * Registers the service worker; `false` if it loads the page again. `mayReload` says whether the visitor would lose nothing.
 */
export async function registerServiceWorker(mayReload: () => boolean): Promise<boolean> {
  if (import.meta.env.DEV || !("serviceWorker" in navigator)) return true;
  isFirstVisit = navigator.serviceWorker.controller === null;
  registered = navigator.serviceWorker.register("./service-worker.js").catch((error) => {
    console.warn("setun: the page does not work offline", error);
    return undefined;
  });
  const serviceWorker = await registered;
  await isControlled();
  if (serviceWorker === undefined) return true;
  const { status } = await isolate({ serviceWorker, mayReload });
  return status !== "reloading";
}

/** Lets the service worker keep what was fetched before it was there. */
export async function keepFetched(): Promise<void> {
  if (!isFirstVisit) return;
  await isControlled();
  navigator.serviceWorker?.controller?.postMessage("keep-fetched");
}

/** Waits until the service worker answers what the page fetches. */
async function isControlled(): Promise<void> {
  const worker = (await registered)?.installing;
  if (!worker || navigator.serviceWorker.controller !== null) return;
  await new Promise<void>((resolve) => {
    navigator.serviceWorker.addEventListener("controllerchange", () => resolve(), { once: true });
    worker.addEventListener("statechange", () => {
      if (worker.state === "redundant") resolve();
    });
  });
}

/**
 * Fetches the build and the weights of the built-in model when the page is idle, so that a story can be written without
 * a network even if none was written before. The service worker keeps them, and the page says so.
 */
export async function keepBuilds(isBusy: () => boolean): Promise<void> {
  if (!navigator.serviceWorker?.controller || savesData()) return;
  await pause(IDLE_MS);
  if ("requestIdleCallback" in window) await new Promise((resolve) => requestIdleCallback(resolve));
  try {
    if (!isBusy() && !(await buildsAreKept())) await (await load(undefined, readBackend())).dispose();
    for (let look = 0; !(await buildsAreKept()); look += 1) {
      if (look === MAX_LOOKS) return;
      await pause(IDLE_MS);
    }
    element("offline-note", HTMLElement).hidden = false;
  } catch (error) {
    // A run says it where it matters.
    console.warn("setun: the story model is not kept for later", error);
  }
}

async function buildsAreKept(): Promise<boolean> {
  for (const name of await caches.keys()) {
    const kept = await (await caches.open(name)).keys();
    const has = (ending: string) => kept.some(({ url }) => url.endsWith(ending));
    if (has(".wasm") && has(".safetensors")) return true;
  }
  return false;
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
