/** The build of the library: done once, however many want it at the same time. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL("../..", import.meta.url));

// Stands in for the compiler, which takes seconds: its outputs appear one by one, and a source can be wrong.
const COMPILER = `
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
if (readFileSync("src/index.ts", "utf8") === "wrong") process.exit(2);
for (const folder of ["build/src", "build/test"]) mkdirSync(folder, { recursive: true });
for (let n = 0; n < 500; n++) writeFileSync("build/src/" + n + ".js", "");
writeFileSync("build/src/index.js", readFileSync("src/index.ts"));
writeFileSync("build/test/a.test.js", "");
`;

let checkout: string;
let library: string;

before(() => {
  checkout = mkdtempSync(join(tmpdir(), "pawl-build-"));
  library = join(checkout, "sdk/typescript");
  for (const folder of [
    "docs",
    "sdk/typescript/src",
    "sdk/typescript/test",
    "sdk/typescript/node_modules/typescript/bin",
  ])
    mkdirSync(join(checkout, folder), { recursive: true });
  for (const name of ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.src.json", "tsconfig.test.json"])
    cpSync(join(HERE, name), join(library, name));
  cpSync(join(HERE, "tools"), join(library, "tools"), { recursive: true });
  cpSync(join(HERE, "../../tools"), join(checkout, "tools"), { recursive: true });
  writeFileSync(join(checkout, "docs/openapi.yaml"), "components: {schemas: {}}\n");
  symlinkSync(join(HERE, "node_modules/yaml"), join(library, "node_modules/yaml"));
  writeFileSync(join(library, "node_modules/typescript/bin/package.json"), '{"type": "module"}');
  writeFileSync(join(library, "node_modules/typescript/bin/tsc"), COMPILER);
  writeFileSync(join(library, "src/index.ts"), "one");
});
after(() => {
  rmSync(checkout, { recursive: true, force: true });
});

const build = (): Promise<unknown> => run(process.execPath, ["tools/build.mjs"], { cwd: library });
const made = (): string => readFileSync(join(library, "dist/index.js"), "utf8");
const inodes = (): number[] =>
  ["dist/index.js", "build/test/a.test.js", "src/wire.ts"].map((file) => statSync(join(library, file)).ino);

test("of four builds at once one compiles, and the next one finds its work", async () => {
  await Promise.all([build(), build(), build(), build()]);
  const first = inodes();
  assert.equal(made(), "one");
  await build();
  assert.deepEqual(inodes(), first);
});

test("a build that failed is done again, and other sources are compiled", async () => {
  writeFileSync(join(library, "src/index.ts"), "wrong");
  for (let tries = 0; tries < 2; tries++) await assert.rejects(build(), { code: 2 });
  writeFileSync(join(library, "src/index.ts"), "two");
  await Promise.all([build(), build()]);
  assert.equal(made(), "two");
});
