/**
 * Keeps the comments by which bundlers leave an `import()` alone.
 *
 * The minifier drops comments with the white space. A name as long as them stands for them until then, so that places
 * in source maps stay right.
 */

const COMMENTS = "/*@vite-ignore*//*webpackIgnore:true*/";

/** An unknown variable, which the minifier leaves alone: `import(it || address)`. */
const STAND_IN = "left_to_the_browser_by_all_bundlers_";

const WRITTEN = /import\(\s*(?:\/\* (?:@vite-ignore|webpackIgnore: true) \*\/ ){2}/g;

/** @type {import("rolldown").Plugin} */
export const importComments = {
  name: "import-comments",
  transform(code) {
    return code.includes("webpackIgnore") ? { code: hide(code), map: null } : null;
  },
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter((output) => output.type === "chunk");
    const changed = chunks.filter((chunk) => chunk.code.includes(STAND_IN));
    for (const chunk of changed) chunk.code = chunk.code.replaceAll(`${STAND_IN}||`, COMMENTS);
    if (changed.length === 0 || changed.some(({ code }) => code.includes(STAND_IN)))
      this.error("no import() that bundlers leave alone, or one whose comments are lost");
  },
};

/** @param {string} code */
function hide(code) {
  return code.replace(WRITTEN, (found) => `import(${STAND_IN}||`.padEnd(found.length));
}
