// npm ci, once for each package-lock.json: node tools/npm_ci.mjs FOLDER. Processes that want it at the same time wait for each other.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { alone } from "./alone.mjs";

const stampOf = (folder) => join(folder, "node_modules/.installed");

function wanted(folder) {
  return createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
}

export function isInstalled(folder) {
  return existsSync(stampOf(folder)) && readFileSync(stampOf(folder), "utf8") === wanted(folder);
}

/** For a process that has the folder's lock. */
export function install(folder) {
  if (isInstalled(folder)) return;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  writeFileSync(stampOf(folder), wanted(folder));
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2]);
  try {
    if (!isInstalled(folder)) alone(folder, () => install(folder));
  } catch (failed) {
    if (failed.status === undefined) throw failed;
    process.stdout.write(failed.stdout ?? "");
    process.exit(1);
  }
}
