// What is made of the sources: src/wire.ts, the library (dist, build/src) and its tests (build/test). For a process that has the folder's lock
// (tools/alone.mjs of the repository).
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const HERE = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const STAMP = join(HERE, "build/.made");
const GENERATED = join(HERE, "src/wire.ts");
const SINGLE = [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.src.json",
  "tsconfig.test.json",
  "tools/generate.mjs",
  "tools/compile.mjs",
];

function filesIn(folder) {
  const names = readdirSync(folder).sort();
  return names.flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesIn(path) : [path];
  });
}

function fingerprint() {
  const hash = createHash("sha256");
  const sources = [...filesIn(join(HERE, "src")), ...filesIn(join(HERE, "test"))].filter((path) => path !== GENERATED);
  for (const path of [join(HERE, "../../docs/openapi.yaml"), ...SINGLE.map((name) => join(HERE, name)), ...sources])
    hash.update(relative(HERE, path)).update("\0").update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

/** Was everything made of the sources as they are? */
export function isCompiled() {
  return (
    existsSync(STAMP) &&
    existsSync(GENERATED) &&
    existsSync(join(HERE, "dist/index.js")) &&
    readFileSync(STAMP, "utf8") === fingerprint()
  );
}

/** The sources are compiled and checked once, without the types of Node; the tests refer to what came out. */
export function compile(node) {
  const made = fingerprint();
  for (const folder of ["build", "dist"]) rmSync(join(HERE, folder), { recursive: true, force: true });
  execFileSync(node, ["tools/generate.mjs"], { cwd: HERE, stdio: "inherit" });
  execFileSync(node, ["node_modules/typescript/bin/tsc", "-b", "tsconfig.test.json"], { cwd: HERE, stdio: "inherit" });
  cpSync(join(HERE, "build/src"), join(HERE, "dist"), { recursive: true });
  writeFileSync(STAMP, made);
}
