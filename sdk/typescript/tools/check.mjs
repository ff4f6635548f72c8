// Checks the library: installs what package-lock.json pins, compiles, then eslint, prettier and all tests, or those that
// are named. PAWL_BIN names the server; default: build/pawl. Where node is older than 20.3, one from npm is used.
//
// node tools/check.mjs [story wire …]
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const NODE = "node@20.20.0";

const run = (command, args, options = {}) => execFileSync(command, args, { cwd: HERE, stdio: "inherit", ...options });

/** The environment of the checks: with a node that is new enough in front. */
function environment() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 3)) return process.env;
  const folder = join(HERE, "../../build/sdk-node");
  const bin = join(folder, "node_modules/node/bin");
  if (!existsSync(join(bin, "node"))) {
    mkdirSync(folder, { recursive: true });
    run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", folder, NODE]);
  }
  return { ...process.env, PATH: bin + delimiter + process.env.PATH };
}

/** npm ci, once for each package-lock.json. */
function install(env) {
  const stamp = join(HERE, "node_modules/.installed");
  const wanted = createHash("sha256")
    .update(readFileSync(join(HERE, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { env });
  writeFileSync(stamp, wanted);
}

/** The compiled test files; `names` chooses some. */
function testFiles(names) {
  const files = readdirSync(join(HERE, "build/test")).filter((file) => file.endsWith(".test.js"));
  const chosen = names.length === 0 ? files : names.map((name) => `${name}.test.js`);
  return chosen.map((file) => join("build/test", file));
}

const names = process.argv.slice(2);
const env = environment();
try {
  install(env);
  run("node", ["tools/build.mjs", "--test"], { env });
  if (names.length === 0) {
    run("node", ["node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "."], { env });
    run("node", ["node_modules/prettier/bin/prettier.cjs", "--check", "--log-level", "warn", "."], { env });
  }
  run("node", ["--test", "--test-reporter", "./tools/reporter.mjs", ...testFiles(names)], { env });
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.exit(failed.status);
}
