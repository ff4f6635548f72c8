// Checks the library: installs what package-lock.json pins, compiles, then eslint, prettier and all tests, or those that
// are named. PAWL_BIN names the server; default: build/pawl. Where node is older than 20.3, one from npm is used.
//
// node tools/check.mjs [story wire …]
// node tools/check.mjs --build        only installs and compiles
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const NODE = "node@20.20.0";

const run = (command, args) => execFileSync(command, args, { cwd: HERE, stdio: "inherit" });

/** A node that is new enough: this one, or one from npm. The system's npm keeps the system's node, which it may need. */
function newNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 3)) return process.execPath;
  const folder = join(HERE, "../../build/sdk-node");
  const node = join(folder, "node_modules/node/bin/node");
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", folder, NODE]);
  }
  return node;
}

/** npm ci, once for each package-lock.json. */
function install() {
  const stamp = join(HERE, "node_modules/.installed");
  const wanted = createHash("sha256")
    .update(readFileSync(join(HERE, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  writeFileSync(stamp, wanted);
}

/** The compiled test files; `names` chooses some. */
function testFiles(names) {
  const files = readdirSync(join(HERE, "build/test")).filter((file) => file.endsWith(".test.js"));
  const chosen = names.length === 0 ? files : names.map((name) => `${name}.test.js`);
  return chosen.map((file) => join("build/test", file));
}

const names = process.argv.slice(2);
try {
  const node = newNode();
  install();
  if (names.includes("--build")) {
    run(node, ["tools/build.mjs"]);
    process.exit(0);
  }
  run(node, ["tools/build.mjs", "--test"]);
  if (names.length === 0) {
    run(node, ["node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "."]);
    run(node, ["node_modules/prettier/bin/prettier.cjs", "--check", "--log-level", "warn", "."]);
  }
  run(node, ["--test", "--test-reporter", "./tools/reporter.mjs", ...testFiles(names)]);
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.exit(failed.status);
}
