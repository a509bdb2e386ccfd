/**
 * Adapts the declarations that the compiler has written to consumers without the DOM's library, and with older ones.
 *
 * Sources use the names of the platform as they are. Declarations import them from `platform-types.js`, where a name
 * that is not declared has a substitute. Declarations that no entry point reaches are removed.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const PLATFORM = "platform-types";

/** Syntax that older compilers or smaller libraries lack, and what replaces it. @type {[RegExp, string][]} */
const REPLACEMENTS = [
  [/\b(\w+Array)<ArrayBuffer>/g, "OwnArray<$1Constructor>"],
  [/\bWebAssembly\.(Memory|Module)\b/g, "WebAssembly$1"],
  [
    /export declare class (\w+) implements AsyncDisposable \{/g,
    "export interface $1 extends AsyncDisposable {\n}\nexport declare class $1 {",
  ],
  [/ *\/\*\*[^*]*\*\/\n *\[Symbol\.asyncDispose\]\(\): Promise<void>;\n/g, ""],
];

/** @param {string} folder @param {string[]} entries Paths of the entry points, without extension. */
export function adaptDeclarations(folder, entries) {
  const platform = resolve(folder, `${PLATFORM}.d.ts`);
  const names = [...readFileSync(platform, "utf8").matchAll(/^export (?:type|declare const) (\w+)/gm)];
  const known = [...new Set(names.map(([, name]) => /** @type {string} */ (name)))];
  const reached = new Set([platform]);
  const visit = (/** @type {string} */ path) => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, name] of text.matchAll(/(?:from|import\() ?"(\.[^"]+)\.js"/g))
      visit(resolve(dirname(path), `${name}.d.ts`));
    writeFileSync(path, adapted(text, relative(dirname(path), folder), known));
  };
  for (const entry of entries) visit(resolve(folder, `${entry}.d.ts`));
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    if (name.endsWith(".d.ts") && !reached.has(resolve(folder, name))) rmSync(join(folder, name));
}

/** @param {string} text @param {string} up The way to the folder. @param {readonly string[]} known */
function adapted(text, up, known) {
  const replaced = REPLACEMENTS.reduce((text, [found, by]) => text.replace(found, by), text);
  const code = replaced.replace(/\/\*.*?\*\/|"[^"\n]*"/gs, "");
  const used = known.filter((name) => new RegExp(`\\b${name}\\b`).test(code));
  if (used.length === 0) return replaced;
  const imports = `import { ${used.join(", ")} } from "${up ? `${up.replaceAll("\\", "/")}/` : "./"}${PLATFORM}.js";\n`;
  return imports + replaced;
}
