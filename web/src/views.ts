/** The views of the page. The address's fragment names the one that is shown. */

const VIEWS = ["story", "chat", "models", "benchmark", "parity", "explorer"] as const;

/** A view's name, in the fragment and in `data-view`. */
export type View = (typeof VIEWS)[number];

/** Shows views, and tells who listens. */
export class Views {
  readonly #listeners: ((view: View, details: string) => void)[] = [];

  constructor() {
    window.addEventListener("hashchange", () => {
      this.#show();
      window.scrollTo(0, 0);
    });
  }

  get current(): View {
    return read().view;
  }

  /** Calls `listener` now and with each change; `details` is what follows the name, after `=`. */
  listen(listener: (view: View, details: string) => void): void {
    this.#listeners.push(listener);
    const { view, details } = read();
    listener(view, details);
  }

  /** Shows the view of the address. */
  start(): void {
    this.#show();
  }

  #show(): void {
    const { view, details } = read();
    for (const part of document.querySelectorAll<HTMLElement>("[data-view]")) {
      part.hidden = !part.dataset.view?.split(" ").includes(view);
    }
    for (const link of document.querySelectorAll("nav a")) {
      if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const listener of this.#listeners) listener(view, details);
  }
}

function read(): { view: View; details: string } {
  const [name = "", ...details] = location.hash.slice(1).split("=");
  return { view: VIEWS.find((view) => view === name) ?? "story", details: details.join("=") };
}
