// Checks the library: installs what package-lock.json pins, compiles, then eslint, prettier and all tests, or those that
// are named. PAWL_BIN names the server; default: build/pawl. Where node is older than 20.3, one from npm is used.
// Several of these may run at the same time: one installs and compiles, and nobody does it again while the others run.
//
// node tools/check.mjs [story wire …]
// node tools/check.mjs --pack FOLDER        only makes the npm archive
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { useMade } from "../../../tools/alone.mjs";
import { install, isInstalled } from "../../../tools/npm_ci.mjs";
import { compile, HERE, isCompiled } from "./compile.mjs";

const run = (command, args) => execFileSync(command, args, { cwd: HERE, stdio: "inherit" });

const NODE = "node@20.20.0";
const NODE_FOLDER = join(HERE, "../../build/sdk-node");
const NODE_STAMP = join(NODE_FOLDER, ".installed");
const [major, minor] = process.versions.node.split(".").map(Number);
const isNew = major > 20 || (major === 20 && minor >= 3);

/** A node that is new enough: this one, or one from npm. The system's npm keeps the system's node, which it may need. */
const node = isNew ? process.execPath : join(NODE_FOLDER, "node_modules/node/bin/node");

const hasNode = () => isNew || (existsSync(NODE_STAMP) && readFileSync(NODE_STAMP, "utf8") === NODE);

function installNode() {
  mkdirSync(NODE_FOLDER, { recursive: true });
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", NODE_FOLDER, NODE]);
  writeFileSync(NODE_STAMP, NODE);
}

const isMade = () => hasNode() && isInstalled(HERE) && isCompiled();

function make() {
  if (!hasNode()) installNode();
  install(HERE);
  if (!isCompiled()) compile(node);
}

/** The compiled test files; `names` chooses some. */
function testFiles(names) {
  const files = readdirSync(join(HERE, "build/test")).filter((file) => file.endsWith(".test.js"));
  const chosen = names.length === 0 ? files : names.map((name) => `${name}.test.js`);
  return chosen.map((file) => join("build/test", file));
}

function check(names) {
  if (names.length === 0) {
    run(node, ["node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "."]);
    run(node, ["node_modules/prettier/bin/prettier.cjs", "--check", "--log-level", "warn", "."]);
  }
  run(node, ["--test", "--test-reporter", "./tools/reporter.mjs", ...testFiles(names)]);
}

const words = process.argv.slice(2);
try {
  useMade(HERE, isMade, make, () => {
    if (words[0] === "--pack") run("npm", ["pack", "--ignore-scripts", "--pack-destination", words[1]]);
    else check(words);
  });
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.exit(failed.status);
}
