/** `setun/isolate` in pages that are simulated: every obstacle, and that no reload repeats. */

import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { addIsolationHeaders, type IsolationPolicy, likelyPolicies } from "../src/isolate/headers.js";
import { type IsolateOptions, isolatePage, type Page } from "../src/isolate/isolate.js";
import { MESSAGES } from "../src/isolate/obstacles.js";
import { isolateResponses } from "../src/isolate/worker.js";

const CHROMIUM = {
  userAgentData: {
    brands: [
      { brand: "Not?A_Brand", version: "24" },
      { brand: "Chromium", version: "156" },
    ],
    mobile: false,
  },
};
const FIREFOX = { userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0" };
const SAFARI = {
  userAgent: "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15",
};

const ADDRESS = "https://app.example/site/index.html";

/** A worker in a state of its life. */
class FakeWorker extends EventTarget {
  state = "installing";
  readonly scriptURL: string;
  constructor(scriptURL: string) {
    super();
    this.scriptURL = scriptURL;
  }
  become(state: string): void {
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }
}

/** A tab of a browser that takes some policies, with the worker that is registered for its pages. */
class Tab {
  readonly takes: readonly IsolationPolicy[];
  readonly changes: object;
  readonly notes = new Map<string, string>();
  loads = 1;
  worker: FakeWorker | undefined;
  /** What installation ends with. */
  ending = "activated";

  /** `changes` are those of its pages. */
  constructor(takes: readonly IsolationPolicy[], changes: object = {}) {
    this.takes = takes;
    this.changes = changes;
  }

  /** The tab's present page. */
  page(): Page {
    const policy = this.worker && new URL(this.worker.scriptURL).searchParams.get("policy");
    const page = {
      crossOriginIsolated: this.takes.some((taken) => taken === policy),
      isSecureContext: true,
      document: { baseURI: ADDRESS },
      location: { href: ADDRESS, protocol: "https:", reload: () => (this.loads += 1) },
      navigator: { ...CHROMIUM, serviceWorker: this.container() },
      sessionStorage: {
        getItem: (key: string) => this.notes.get(key) ?? null,
        setItem: (key: string, value: string) => this.notes.set(key, value),
        removeItem: (key: string) => this.notes.delete(key),
      },
      ...this.changes,
    };
    return page as unknown as Page;
  }

  container(): ServiceWorkerContainer {
    const scope = new URL("./", ADDRESS).href;
    const registration = (worker: FakeWorker) => ({ scope, active: worker, waiting: null, installing: null });
    return {
      controller: this.worker ?? null,
      getRegistration: async () => this.worker && registration(this.worker),
      register: async (script: URL) => {
        const installing = new FakeWorker(script.href);
        const active = this.worker ?? null;
        queueMicrotask(() => {
          if (this.ending === "activated") this.worker = installing;
          installing.become(this.ending);
        });
        return { scope, active, waiting: null, installing };
      },
    } as unknown as ServiceWorkerContainer;
  }

  /** Loads pages until one is not loaded again. */
  async visit(options: IsolateOptions = {}): Promise<object> {
    for (let at = 0; at < 10; at += 1) {
      const outcome = await isolatePage(this.page(), options);
      if (outcome.status !== "reloading") return outcome;
    }
    throw new Error("it does not end");
  }
}

const refused = (reason: string, words = /./) => ({
  status: "unsupported",
  reason,
  message: expect.stringMatching(words),
});

describe("isolate", () => {
  it("loads a page again once, and never one that is isolated", async () => {
    const tab = new Tab(["document"]);
    expect(await tab.visit()).toEqual({ status: "isolated" });
    expect(tab.loads).toBe(2);
    expect(await tab.visit()).toEqual({ status: "isolated" });
    expect(tab.loads).toBe(2);
    expect(tab.worker?.scriptURL).toBe("https://app.example/site/isolate-worker.js?policy=document");
    expect(tab.notes.size).toBe(0);
  });

  it("tries the next policy where a browser ignores one", async () => {
    const tab = new Tab(["require-corp"]);
    expect(await tab.visit()).toEqual({ status: "isolated" });
    expect(tab.loads).toBe(4);
  });

  it("ends where a browser ignores all, also on later visits", async () => {
    const tab = new Tab([]);
    expect(await tab.visit()).toEqual(refused("not-isolated"));
    expect(tab.loads).toBe(4);
    expect(await tab.visit()).toEqual(refused("not-isolated"));
    expect(await tab.visit({ policy: "require-corp" })).toEqual(refused("not-isolated"));
    expect(tab.loads).toBe(4);
  });

  it("isolates again after the worker is gone", async () => {
    const tab = new Tab(["document"]);
    await tab.visit();
    tab.worker = undefined;
    expect(await tab.visit()).toEqual({ status: "isolated" });
    expect(tab.loads).toBe(3);
  });

  it("takes the policy that is named, and replaces that of an earlier version", async () => {
    const tab = new Tab(["document", "require-corp"]);
    expect(await tab.visit({ policy: "require-corp" })).toEqual({ status: "isolated" });
    expect(await tab.visit()).toEqual({ status: "isolated" });
    expect(tab.worker?.scriptURL).toMatch(/policy=require-corp$/);
    expect(await tab.visit({ policy: "document" })).toEqual({ status: "isolated" });
    await expect.poll(() => tab.worker?.scriptURL).toMatch(/policy=document$/);
    expect(tab.loads).toBe(2);
  });

  it("waits for a better moment", async () => {
    const tab = new Tab(["document"]);
    expect(await tab.visit({ mayReload: () => false })).toEqual({ status: "on-next-load" });
    expect(tab.loads).toBe(1);
    expect(await tab.visit({ mayReload: () => false })).toEqual({ status: "isolated" });
  });

  it("takes the page's own registration, once", async () => {
    const tab = new Tab([]);
    const active = new FakeWorker("https://app.example/site/own.js");
    const own = { scope: "https://app.example/site/", active } as unknown as ServiceWorkerRegistration;
    expect(await tab.visit({ serviceWorker: own })).toEqual(refused("not-isolated"));
    expect(tab.loads).toBe(2);
    const elsewhere = { ...own, scope: "https://app.example/other/" };
    expect(await tab.visit({ serviceWorker: elsewhere })).toEqual(refused("scope", /\/other\//));
  });

  it("refuses unknown policies", async () => {
    const wrong = { policy: "coep" } as unknown as IsolateOptions;
    const error = { code: "bad-option", message: expect.stringContaining('policy is "coep", expected auto') };
    await expect(new Tab([]).visit(wrong)).rejects.toMatchObject(error);
  });

  const at = (href: string) => ({ location: { href, protocol: new URL(href).protocol } });
  const throwing = (name: string) =>
    Object.defineProperty({}, name, {
      enumerable: true,
      get: () => {
        throw new DOMException("", "SecurityError");
      },
    });

  it.each([
    ["no-page", { document: undefined }, /in a page$/],
    ["extension", at("chrome-extension://abc/page.html"), /manifest$/],
    ["extension", at("moz-extension://abc/page.html"), /manifest$/],
    ["insecure", at("file:///index.html"), /https/],
    ["insecure", { ...at("http://app.example/"), isSecureContext: false }, /https/],
    ["framed", { self: 1, top: 2, navigator: FIREFOX }, /outermost page/],
    ["no-service-worker", { navigator: CHROMIUM }, /no service workers/],
    ["no-service-worker", { navigator: throwing("serviceWorker") }, /no service workers/],
    ["no-storage", { sessionStorage: undefined }, /storage/],
    ["scope", at("https://app.example/"), /app\.example\/site\/ alone/],
  ] as const)("says what is in the way: %s", async (reason, changes, words) => {
    const tab = new Tab([], changes);
    // The getters of the page are read where it is read.
    const page = Object.defineProperties(tab.page(), Object.getOwnPropertyDescriptors(changes));
    expect(await isolatePage(page, {})).toEqual(refused(reason, words));
    expect(tab.loads).toBe(1);
  });

  it("needs a session's storage, whose getter may throw", async () => {
    const tab = new Tab([]);
    const page = Object.defineProperties(
      tab.page(),
      Object.getOwnPropertyDescriptors(throwing("sessionStorage")),
    );
    expect(await isolatePage(page, {})).toEqual(refused("no-storage"));
    expect(tab.loads).toBe(1);
  });

  it("isolates a frame by the policy of documents alone", async () => {
    const frame = { self: 1, top: 2 };
    expect(await new Tab(["document"], frame).visit()).toEqual({ status: "isolated" });
    const tab = new Tab(["require-corp"], frame);
    expect(await tab.visit()).toEqual(refused("not-isolated"));
    expect(tab.loads).toBe(2);
  });

  it("says that a worker cannot be had", async () => {
    const tab = new Tab(["document"]);
    tab.ending = "redundant";
    expect(await tab.visit()).toEqual(refused("service-worker-failed", /not activated/));
    tab.container = () =>
      ({
        getRegistration: async () => undefined,
        register: async () => Promise.reject(new TypeError("404")),
      }) as unknown as ServiceWorkerContainer;
    expect(await tab.visit()).toEqual(
      refused("service-worker-failed", /isolate-worker\.js .*TypeError: 404/),
    );
    expect(tab.loads).toBe(1);
  });

  it("does not replace another worker", async () => {
    const tab = new Tab(["document"]);
    tab.worker = new FakeWorker("https://app.example/site/own.js");
    const told = refused("other-service-worker", /site\/own\.js: call addIsolationHeaders/);
    expect(await tab.visit()).toEqual(told);
    expect(tab.worker.scriptURL).toMatch(/own\.js$/);
  });
});

describe("policies of browsers", () => {
  const version = (version: string, mobile = false) => ({
    userAgentData: { brands: [{ brand: "Chromium", version }], mobile },
  });

  it.each([
    [CHROMIUM, ["document", "credentialless", "require-corp"]],
    [version("137"), ["document", "credentialless", "require-corp"]],
    [version("136"), ["credentialless", "require-corp"]],
    [version("156", true), ["credentialless", "require-corp"]],
    [version("95"), ["require-corp"]],
    [FIREFOX, ["credentialless", "require-corp"]],
    [SAFARI, ["require-corp"]],
    [{}, ["require-corp"]],
  ])("%j", (browser, policies) => {
    expect(likelyPolicies(browser)).toEqual(policies);
  });
});

describe("addIsolationHeaders", () => {
  it("adds them, and keeps the rest", async () => {
    const headers = { "content-type": "text/html", "cross-origin-embedder-policy": "unsafe-none" };
    const response = new Response("text", { status: 404, statusText: "Not Found", headers });
    const isolated = addIsolationHeaders(response, "require-corp");
    expect([isolated.status, isolated.statusText, await isolated.text()]).toEqual([404, "Not Found", "text"]);
    expect(Object.fromEntries(isolated.headers)).toEqual({
      ...headers,
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
    });
    const document = addIsolationHeaders(new Response(""), "document").headers;
    expect(Object.fromEntries(document)).toMatchObject({
      "document-isolation-policy": "isolate-and-credentialless",
    });
    expect(document.has("cross-origin-opener-policy")).toBe(false);
  });

  it("keeps ranges, and reads no body ahead", async () => {
    let pulls = 0;
    const body = new ReadableStream(
      {
        pull: (controller) => {
          pulls += 1;
          controller.enqueue(new Uint8Array(4));
          if (pulls === 3) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const init = { status: 206, headers: { "content-range": "bytes 0-11/99" } };
    const isolated = addIsolationHeaders(new Response(body, init), "document");
    expect([isolated.status, isolated.headers.get("content-range"), pulls]).toEqual([
      206,
      "bytes 0-11/99",
      0,
    ]);
    expect((await isolated.arrayBuffer()).byteLength).toBe(12);
  });

  it("returns opaque responses, redirections and errors as they are, and takes those without a body", () => {
    for (const type of ["opaque", "opaqueredirect", "error"]) {
      const response = { type, status: 0 } as Response;
      expect(addIsolationHeaders(response, "document")).toBe(response);
    }
    for (const status of [204, 205, 304])
      expect(addIsolationHeaders(new Response(null, { status }), "document").status).toBe(status);
  });
});

describe("the worker", () => {
  afterEach(() => vi.unstubAllGlobals());

  const origin = "https://app.example";

  /** The answer to a request, or nothing where the browser answers it. */
  function answer(request: object, address = `${origin}/isolate-worker.js?policy=credentialless`) {
    const listeners = new Map<string, (event: object) => void>();
    const skipWaiting = vi.fn();
    isolateResponses({
      location: { href: address, origin },
      skipWaiting,
      addEventListener: (type: string, listener: (event: never) => void) =>
        listeners.set(type, listener as (event: object) => void),
    });
    listeners.get("install")?.({});
    expect(skipWaiting).toHaveBeenCalledOnce();
    let answered: Promise<Response> | undefined;
    const respondWith = (response: Promise<Response>) => {
      answered = response;
    };
    listeners.get("fetch")?.({ request, respondWith });
    return answered;
  }

  const request = { mode: "same-origin", destination: "", cache: "default", url: `${origin}/a` };

  it.each([
    [{ mode: "navigate", destination: "document" }, true],
    [{ mode: "navigate", destination: "iframe" }, true],
    [{ destination: "worker" }, true],
    [{ destination: "sharedworker" }, true],
    [{ destination: "image", mode: "no-cors" }, false],
    [{ destination: "", mode: "cors" }, false],
    [{ destination: "worker", url: "https://cdn.example/worker.js", mode: "cors" }, false],
    [{ mode: "navigate", destination: "document", cache: "only-if-cached" }, false],
  ])("answers for pages, frames and workers alone: %j", async (changes, isAnswered) => {
    vi.stubGlobal("fetch", async () => new Response("text"));
    const response = await answer({ ...request, ...changes });
    expect(response?.headers.get("cross-origin-embedder-policy")).toBe(
      isAnswered ? "credentialless" : undefined,
    );
  });

  it("passes failures of the network on, and takes the browser's policy where none is named", async () => {
    vi.stubGlobal("fetch", async () => Promise.reject(new TypeError("offline")));
    await expect(answer({ ...request, mode: "navigate" })).rejects.toThrow("offline");
    vi.stubGlobal("fetch", async () => new Response("text"));
    vi.stubGlobal("navigator", CHROMIUM);
    for (const address of [`${origin}/sw.js`, `${origin}/sw.js?policy=no`]) {
      const response = await answer({ ...request, mode: "navigate" }, address);
      expect(response?.headers.has("document-isolation-policy"), address).toBe(true);
    }
  });
});

it("has every obstacle in the documents", () => {
  const page = readFileSync(new URL("../../docs/hosts.md", import.meta.url), "utf8");
  for (const name of Object.keys(MESSAGES)) expect(page).toContain(`| \`${name}\` |`);
});
