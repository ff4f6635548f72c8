import { defineConfig } from "@playwright/test";

// Debian's Chromium, or the one that PAWL_CHROMIUM names.
export default defineConfig({
  testDir: "e2e",
  timeout: 180_000,
  expect: { timeout: 60_000 },
  workers: 1,
  reporter: [["list"], ["json", { outputFile: "test-results/browser.json" }]],
  outputDir: "test-results/browser",
  use: {
    launchOptions: { executablePath: process.env["PAWL_CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    // Recording every test costs a third of its time: PAWL_TRACE=1 when one fails and its picture does not tell why.
    trace: process.env["PAWL_TRACE"] === undefined ? "off" : "retain-on-failure",
    screenshot: "only-on-failure",
  },
});
