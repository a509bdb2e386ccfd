/** Accessibility findings of axe. */

import axe from "axe-core";

/** What axe finds on a page as it is, in words. @param {import("playwright-core").Page} page */
export async function findings(page) {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (window).axe.run(document, {
      resultTypes: ["violations"],
    });
    return violations.map((/** @type {any} */ { id, help, nodes }) => {
      const places = nodes.map(
        (/** @type {any} */ { target, failureSummary }) => `${target}: ${failureSummary}`,
      );
      return `${id}: ${help}\n${places.join("\n")}`;
    });
  });
  return violations.join("\n\n");
}
