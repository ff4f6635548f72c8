// What the console may cost: bytes until it shows something, and work of the browser's main thread until it can be used.
import { expect, test } from "@playwright/test";
import { REFUND, Server } from "./server";

const FIRST_LOAD_MAX = 250 * 1024; // as they travel, compressed
const WORK_MAX_S = 1; // by the thread's own clock: a busy machine does not count

const server = new Server();

test.beforeAll(async () => {
  await server.start();
  await server.call("PUT", "workflows/refund", REFUND);
  for (let n = 0; n < 100; n++) await server.call("POST", "workflows/refund/runs", { input: { order: String(n), amount: 1 } });
});
test.afterAll(() => server.end());

test("the list of runs is there after at most 250 KB and a second of work", async ({ page }) => {
  const browser = await page.context().newCDPSession(page);
  await browser.send("Performance.enable", { timeDomain: "threadTicks" });
  await browser.send("Network.enable");
  const files = new Set<string>();
  let bytes = 0;
  browser.on("Network.responseReceived", ({ requestId, response }) => {
    if (response.url.includes("/console/")) files.add(requestId);
  });
  browser.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  await page.goto(`${server.url}/console/runs`);
  await expect(page.locator("[data-entry]").first()).toBeVisible();
  const { metrics } = await browser.send("Performance.getMetrics");
  const work = metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN;
  const shown = await page.evaluate(() => Math.round(performance.now()));
  console.log(`console: ${files.size} files, ${(bytes / 1024).toFixed(1)} KB, ${work.toFixed(2)} s of work, usable after ${shown} ms`);
  expect(files.size).toBeGreaterThanOrEqual(3); // the page, its script, its style
  expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_MAX);
  expect(work).toBeGreaterThan(0);
  expect(work).toBeLessThanOrEqual(WORK_MAX_S);
});
