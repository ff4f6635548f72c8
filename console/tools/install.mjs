// What the build, the checks and the pictures of the console share: its packages and the API's types.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { install, isInstalled } from "../../tools/npm_ci.mjs";

export const HERE = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

export function run(command, args, options = {}) {
  execFileSync(command, args, { cwd: HERE, stdio: ["ignore", "pipe", "inherit"], ...options });
}

/** A program of a package that is installed here. */
export function tool(path, ...args) {
  run(process.execPath, [join("node_modules", path), ...args]);
}

const SPEC = join(HERE, "../docs/openapi.yaml");
const TYPES = join(HERE, "generated/schema.d.ts");
const STAMP = join(HERE, "generated/.made");

function fingerprint() {
  const hash = createHash("sha256");
  for (const path of [SPEC, join(HERE, "package-lock.json")]) hash.update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

/** Are the packages and the API's types there? */
export function isReady() {
  return isInstalled(HERE) && existsSync(TYPES) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === fingerprint();
}

/** Makes them. For a process that has the folder's lock (tools/alone.mjs). */
export function makeReady() {
  install(HERE);
  if (isReady()) return;
  tool("openapi-typescript/bin/cli.js", SPEC, "--default-non-nullable", "false", "-o", TYPES);
  writeFileSync(STAMP, fingerprint());
}
