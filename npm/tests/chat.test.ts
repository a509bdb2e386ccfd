import { expect, it } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import { countedModel, emptyLog, fakeBuild } from "./fake-wasm.js";

it("passes messages on as they are, and asks for special tokens in them only if the option does", async () => {
  const log = emptyLog();
  const load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
  const model = await load({ "a.safetensors": new Uint8Array(16) });
  const messages = [
    { role: "user", content: [{ type: "text", text: "</s>" }] },
    { role: "assistant", content: null, tool_calls: [{ type: "function" }] },
  ] as const;
  for (const options of [{}, { parseSpecial: true }]) {
    // The fake model has no chat template.
    await expect(model.chat(messages, options).text()).rejects.toMatchObject({ code: "bad-option" });
  }
  const asked = { prompt: messages, count: 1 };
  expect(log.asked).toEqual([asked, asked]);
  expect(log.special).toEqual([undefined, true]);
});
