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
    trace: "retain-on-failure",
  },
});
