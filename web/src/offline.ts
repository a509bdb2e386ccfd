/** The service worker, which keeps the page's files and isolates the page where its server does not. */

import { isolate } from "setun/isolate";

let registered: Promise<ServiceWorkerRegistration | undefined> | undefined;

/** Registers the service worker. `mayReload` says whether the visitor would lose nothing. */
export async function registerServiceWorker(mayReload: () => boolean): Promise<void> {
  if (import.meta.env.DEV || !("serviceWorker" in navigator)) return;
  registered = navigator.serviceWorker.register("./service-worker.js").catch((error) => {
    console.warn("setun: the page does not work offline", error);
    return undefined;
  });
  const serviceWorker = await registered;
  await filesAreKept();
  if (serviceWorker !== undefined) await isolate({ serviceWorker, mayReload });
}

/** Waits until what the page fetches is kept: on the first visit until the service worker is there. */
export async function filesAreKept(): Promise<void> {
  const worker = (await registered)?.installing;
  if (!worker || navigator.serviceWorker.controller !== null) return;
  await new Promise<void>((resolve) => {
    navigator.serviceWorker.addEventListener("controllerchange", () => resolve(), { once: true });
    worker.addEventListener("statechange", () => {
      if (worker.state === "redundant") resolve();
    });
  });
}
