// Runs wasm_tests.wasm, in Node or in a page, and returns its report: a string that begins with
// "ok" if every check passed.
//
//   node wasm_tests.mjs target/…/examples/wasm_tests.wasm [seeds]
//   import { runTests } from "./wasm_tests.mjs"; await runTests(bytes, 20)

/** Instantiates the module and runs its checks with this many seeds each. */
export async function runTests(bytes, seeds = 10) {
  const module = await WebAssembly.compile(bytes);
  const imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    // Threaded builds import their memory, and run here on one thread.
    if (kind !== "memory") throw new Error(`unexpected import ${from}.${name}`);
    imports[from] = { [name]: new WebAssembly.Memory({ initial: 64, maximum: 65536, shared: true }) };
  }
  const { exports } = await WebAssembly.instantiate(module, imports);
  const memory = exports.memory ?? Object.values(imports)[0].memory;
  if (exports.__wasm_init_tls) {
    // The main thread's own variables go to a page of their own.
    const page = memory.grow(1) * 65536;
    exports.__wasm_init_tls(page);
  }
  const length = exports.run(seeds, 1);
  // A copy: a shared buffer cannot be decoded.
  return new TextDecoder().decode(new Uint8Array(memory.buffer, exports.report(), length).slice());
}

if (typeof process !== "undefined" && process.argv[1] && import.meta.url.endsWith(process.argv[1].split("/").pop())) {
  const { readFile } = await import("node:fs/promises");
  const report = await runTests(await readFile(process.argv[2]), Number(process.argv[3] ?? 10));
  console.log(report);
  process.exit(report.startsWith("ok") ? 0 : 1);
}
