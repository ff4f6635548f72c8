// Makes src/wire.ts, then compiles the library into dist, and with --test the tests into build. The sources are compiled and checked once, without
// the types of Node; the tests refer to what came out.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const project = process.argv.includes("--test") ? "tsconfig.test.json" : "tsconfig.src.json";

for (const folder of ["build", "dist"]) rmSync(`${HERE}/${folder}`, { recursive: true, force: true });
try {
  execFileSync(process.execPath, ["tools/generate.mjs"], { cwd: HERE, stdio: "inherit" });
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-b", project], { cwd: HERE, stdio: "inherit" });
} catch (failed) {
  process.exit(failed.status ?? 1);
}
cpSync(`${HERE}/build/src`, `${HERE}/dist`, { recursive: true });
