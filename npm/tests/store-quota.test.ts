import { afterEach, describe, expect, it, vi } from "vitest";
import { openStorage, withLock } from "../src/store/browser-storage.js";
import { checkQuota, missingBytesFor, requestPersistence, storageEstimate } from "../src/store/quota.js";
import { translateErrors } from "../src/store/storage-errors.js";

afterEach(() => vi.unstubAllGlobals());

/** A browser with such a `navigator.storage`. */
function browser(storage: unknown, more: object = {}): void {
  vi.stubGlobal("navigator", { storage, ...more });
}

describe("storageEstimate", () => {
  it("is the browser's estimate, with a tolerance", async () => {
    browser({ estimate: async () => ({ quota: 1000, usage: 400 }) });
    expect(await storageEstimate()).toEqual({ quota: 1000, usage: 400 });
    await checkQuota("a model", 600);
    await checkQuota("a model", 630);
    await expect(checkQuota("a model", 700)).rejects.toMatchObject({
      code: "storage-full",
      message: expect.stringMatching(/^no room for a model .*700 bytes .*100 more .*`store: false`$/),
    });
  });

  it("is not checked if the browser has none", async () => {
    for (const storage of [
      undefined,
      {},
      { estimate: () => Promise.reject(new Error()) },
      { estimate: async () => ({}) },
    ]) {
      browser(storage);
      expect(await storageEstimate()).toBeUndefined();
      await checkQuota("a model", 1e15);
    }
    expect(missingBytesFor(10, { quota: 5, usage: 9 })).toBe(10);
  });
});

describe("requestPersistence", () => {
  it("asks unless it is granted, and never fails", async () => {
    const persist = vi.fn(async () => true);
    browser({ persisted: async () => false, persist });
    expect(await requestPersistence()).toBe(true);
    browser({ persisted: async () => true, persist });
    expect(await requestPersistence()).toBe(true);
    expect(persist).toHaveBeenCalledTimes(1);
    for (const storage of [
      undefined,
      { persisted: async () => false, persist: () => Promise.reject(new Error()) },
    ]) {
      browser(storage);
      expect(await requestPersistence()).toBe(false);
    }
  });
});

describe("a browser without storage", () => {
  it.each([
    ["has no storage", undefined],
    ["refuses", { getDirectory: () => Promise.reject(new DOMException("no", "SecurityError")) }],
  ])("has no store: it %s", async (_, storage) => {
    browser(storage);
    expect(await openStorage()).toBeUndefined();
  });
});

describe("withLock", () => {
  const signal = new AbortController().signal;

  it("runs at once without Web Locks", async () => {
    browser(undefined);
    expect(await withLock("h/o/n", signal, async () => 7)).toBe(7);
  });

  it("rejects with the signal's own reason", async () => {
    const aborted = new DOMException("The request was aborted.", "AbortError");
    const controller = new AbortController();
    const request = (_: string, { signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(aborted)));
    browser(undefined, { locks: { request } });
    const waiting = withLock("h/o/n", controller.signal, async () => 7);
    controller.abort("enough");
    await expect(waiting).rejects.toBe("enough");
    await expect(withLock("h/o/n", controller.signal, async () => 7)).rejects.toBe("enough");
  });

  it("rejects with the work's error, even if the signal is aborted", async () => {
    const request = (_: string, __: object, work: () => unknown) => work();
    browser(undefined, { locks: { request } });
    const controller = new AbortController();
    const failure = new Error("mine");
    const work = async () => {
      controller.abort();
      throw failure;
    };
    await expect(withLock("h/o/n", controller.signal, work)).rejects.toBe(failure);
  });
});

describe("a storage error", () => {
  it.each([
    ["QuotaExceededError", "storage-full"],
    ["NotReadableError", "io"],
  ])("has a code: %s", async (name, code) => {
    const cause = new DOMException("because", name);
    const failing = translateErrors("write", "a/b", () => Promise.reject(cause));
    await expect(failing).rejects.toMatchObject({ code, message: expect.stringContaining("a/b"), cause });
  });
});
