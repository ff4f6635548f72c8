// npm ci, once for each package-lock.json, and only by one process at a time: several build folders share node_modules.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const HERE = fileURLToPath(new URL("..", import.meta.url));

const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const LOCK = join(HERE, ".build-lock");

/** Was the process that holds the lock killed? */
function isAbandoned() {
  try {
    process.kill(Number(readlinkSync(LOCK)), 0);
    return false;
  } catch (failed) {
    return failed.code === "ESRCH";
  }
}

/** Runs `work` while no other process does. The lock is a link to the number of the process: made at once, with its content. */
export function alone(work) {
  for (;;) {
    try {
      symlinkSync(String(process.pid), LOCK);
      break;
    } catch (failed) {
      if (failed.code !== "EEXIST") throw failed;
      if (isAbandoned()) rmSync(LOCK, { force: true });
      else pause(100);
    }
  }
  try {
    return work();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

export function run(command, args, options = {}) {
  execFileSync(command, args, { cwd: HERE, stdio: ["ignore", "pipe", "inherit"], ...options });
}

/** A program of a package that is installed here. */
export function tool(path, ...args) {
  run(process.execPath, [join("node_modules", path), ...args]);
}

const SPEC = join(HERE, "../docs/openapi.yaml");

/** The API's types. */
export function generate() {
  tool("openapi-typescript/bin/cli.js", SPEC, "--default-non-nullable", "false", "-o", "generated/schema.d.ts");
}

export function install() {
  const stamp = join(HERE, "node_modules/.installed");
  const wanted = createHash("sha256")
    .update(readFileSync(join(HERE, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  writeFileSync(stamp, wanted);
}
