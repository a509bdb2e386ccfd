/** Refusals of `load` where tabs cannot share a model. */

import { afterEach, describe, expect, it, vi } from "vitest";
import { connectLocal } from "../../src/host-links.js";
import { loadOn } from "../../src/load.js";
import { loadTabs } from "../../src/shared/load-tabs.js";
import type { ModelSource } from "../../src/sources.js";
import { countedModel, emptyLog, fakeBuild } from "../fake-wasm.js";
import { FakeOrigin, openOf } from "./fake-tabs.js";

const URL_SOURCE = { kind: "url", layout: "file", name: "a", url: "https://localhost/a" } as const;
const BLOBS = { kind: "blobs", layout: "file", name: "a", blobs: new Map() } as const;

afterEach(() => vi.unstubAllGlobals());

function load(source: ModelSource, { inWorker = true, options = {}, draft = undefined as unknown } = {}) {
  const model = { source, fetchOptions: { store: false } };
  return loadTabs({
    open: openOf(new FakeOrigin().openTab()),
    model,
    draft: draft === undefined ? undefined : { source: draft as ModelSource, fetchOptions: { store: false } },
    inWorker,
    options: { shared: true, ...options },
    version: "0",
    host: { baseUrl: () => "https://localhost/" },
  });
}

const bad = (message: string) => ({ code: "bad-option", message: expect.stringContaining(message) });

describe("shared", () => {
  it("is refused for what other tabs cannot load", async () => {
    await expect(load(BLOBS)).rejects.toMatchObject(bad("shared: expected a URL or a Hub name"));
    await expect(load(URL_SOURCE, { draft: BLOBS })).rejects.toMatchObject(bad("expected a URL"));
  });

  it("is refused without a worker", async () => {
    await expect(load(URL_SOURCE, { inWorker: false })).rejects.toMatchObject(bad("worker: false"));
  });

  it("is refused without Web Locks", async () => {
    vi.stubGlobal("navigator", {});
    await expect(load(URL_SOURCE)).rejects.toMatchObject(bad("HTTPS or from localhost"));
  });
});

describe("a host without tabs", () => {
  const loadInNode = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(emptyLog()), openModel: countedModel(emptyLog()) }),
  });

  it.each(["shared", "resume"])("refuses %s", async (name) => {
    await expect(loadInNode(undefined, { [name]: true })).rejects.toMatchObject(
      bad(`${name}: only pages have tabs`),
    );
  });
});
