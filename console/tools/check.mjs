// Checks the console: types, eslint, prettier, the unit tests, and in a real browser against the server that PAWL_BIN
// names (default: build/pawl). With names only those tests in the browser: node tools/check.mjs "kill -9"
import { useMade } from "../../tools/alone.mjs";
import { HERE, isReady, makeReady } from "./install.mjs";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const program = (path, ...args) => execFileSync(process.execPath, [`node_modules/${path}`, ...args], { cwd: HERE, stdio: "inherit" });

/** Of a report in JSON: both tools count in their own words. */
const counted = (path, read) => read(JSON.parse(readFileSync(`${HERE}/${path}`, "utf8")));

function unitTests() {
  program("vitest/vitest.mjs", "run", "--reporter=dot", "--reporter=json", "--outputFile.json=test-results/unit.json");
  return counted("test-results/unit.json", (report) => report.numPassedTests);
}

function browserTests(names) {
  program("@playwright/test/cli.js", "test", ...names.flatMap((name) => ["-g", name]));
  return counted("test-results/browser.json", (report) => report.stats.expected);
}

function check(names) {
  let passed = 0;
  if (names.length === 0) {
    program("typescript/bin/tsc", "--noEmit");
    program("typescript/bin/tsc", "--noEmit", "-p", "tsconfig.node.json");
    program("eslint/bin/eslint.js", "--max-warnings", "0", ".");
    program("prettier/bin/prettier.cjs", "--check", "--log-level", "warn", ".");
    passed += unitTests();
  }
  passed += browserTests(names);
  console.log(`${passed} passed, 0 failed`);
}

try {
  useMade(HERE, isReady, makeReady, () => check(process.argv.slice(2)));
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.exit(failed.status);
}
