/** The views of the page. The address's fragment names the one that is shown. */

/** Shows views, and tells who listens. Their names are in the fragment and in `data-view`. */
export class Views<View extends string> {
  readonly #names: readonly [View, ...View[]];
  readonly #listeners: ((view: View, details: string) => void)[] = [];

  /** The first view is shown by default. */
  constructor(names: readonly [View, ...View[]]) {
    this.#names = names;
    window.addEventListener("hashchange", () => {
      this.#show();
      window.scrollTo(0, 0);
    });
  }

  get current(): View {
    return this.#read().view;
  }

  /** Calls `listener` now and with each change; `details` is what follows the name, after `=`. */
  listen(listener: (view: View, details: string) => void): void {
    this.#listeners.push(listener);
    const { view, details } = this.#read();
    listener(view, details);
  }

  /** Shows the view of the address. */
  start(): void {
    this.#show();
  }

  #show(): void {
    const { view, details } = this.#read();
    for (const part of document.querySelectorAll<HTMLElement>("[data-view]")) {
      part.hidden = !part.dataset.view?.split(" ").includes(view);
    }
    for (const link of document.querySelectorAll("nav a")) {
      if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const listener of this.#listeners) listener(view, details);
  }

  #read(): { view: View; details: string } {
    const [name = "", ...details] = location.hash.slice(1).split("=");
    const view = this.#names.find((view) => view === name) ?? this.#names[0];
    return { view, details: details.join("=") };
  }
}
