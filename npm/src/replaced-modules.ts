/**
 * The end of models whose module a development server has replaced.
 *
 * Vite evaluates an updated module once more, at an address with another time (`?t=`), and the page stays. What the
 * version before has loaded keeps its worker. The addresses of the modules that call `load` are known from the stack alone.
 */

import type { Load } from "./load.js";
import type { Model } from "./model.js";

/** Addresses of modules without their queries, and the queries. */
type Modules = ReadonlyMap<string, string>;

/** A call of `load`. It does not keep a model from being collected. */
interface Loaded {
  readonly source: unknown;
  readonly modules: Modules;
  readonly loading: Promise<WeakRef<Model> | undefined>;
}

/** Ends models that an earlier version of the calling module has loaded from the same source. */
export function endingReplaced(load: Load, stackOf = () => new Error().stack): Load {
  let calls: Loaded[] = [];
  return (given, options) => {
    const source = given instanceof URL ? given.href : given;
    const modules = modulesOf(stackOf());
    const isReplaced = (call: Loaded) => call.source === source && isLaterThan(modules, call.modules);
    for (const { loading } of calls.filter(isReplaced))
      void loading.then((model) => model?.deref()?.dispose());
    calls = calls.filter((call) => !isReplaced(call));
    const model = load(given, options);
    const loading = model.then(
      (loaded) => new WeakRef(loaded),
      () => undefined,
    );
    if (modules.size > 0) calls.push({ source, modules, loading });
    return model;
  };
}

/** The modules of a stack, in the forms of all browsers. Installed packages have a query `v`, and are never updated. */
function modulesOf(stack = ""): Modules {
  const addresses = stack.matchAll(/(https?:\/\/[^\s()?]+)(\?[^\s():]*)?(?=:\d+:\d+)/g);
  const own = [...addresses].filter(([, , query = ""]) => !/[?&]v=/.test(query));
  return new Map(own.map(([, address = "", query = ""]) => [address, query]));
}

/** Whether modules include an update of one of others. */
function isLaterThan(modules: Modules, others: Modules): boolean {
  return [...modules].some(([address, query]) => {
    const before = others.get(address);
    return /[?&]t=\d+/.test(query) && before !== undefined && before !== query;
  });
}
