/** Gates that a test opens, and turns of the event loop. */

/** Work awaits `opened`; it stays closed until the test calls `open`. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets the event loop turn a number of times, in which what is under way goes on. */
export async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn();
}

/** Waits for what must come; with fake timers too, which `expect.poll` would move. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turn();
}
