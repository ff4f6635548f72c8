// Builds the console into dist: bundles, then compresses every file and makes the page for each depth below /console/.
// Does nothing when dist was made of the same sources.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { useMade } from "../../tools/alone.mjs";
import { HERE, makeReady, tool } from "./install.mjs";

const DIST = join(HERE, "dist");
const STAMP = join(DIST, ".built");
const SPEC = join(HERE, "../docs/openapi.yaml");
const PAGE_DEPTHS = 5; // as in /console/a/b/c/d/e; deeper paths are 404
const FIRST_LOAD_MAX = 250 * 1024; // compressed; see docs/adr

function filesIn(folder) {
  const names = readdirSync(folder).sort();
  return names.flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesIn(path) : [path];
  });
}

function fingerprint() {
  const hash = createHash("sha256");
  const single = ["index.html", "package-lock.json", "vite.config.ts", "tsconfig.json", "tools/build.mjs"].map((n) => join(HERE, n));
  const sources = [...filesIn(join(HERE, "src")), ...filesIn(join(HERE, "public"))];
  for (const path of [SPEC, ...single, ...sources]) hash.update(relative(HERE, path)).update("\0").update(readFileSync(path));
  return hash.digest("hex");
}

/** NAME.br and NAME.gz beside NAME; returns the size of the first. */
function compress(path) {
  const plain = readFileSync(path);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
  const small = brotliCompressSync(plain, { params: quality });
  writeFileSync(`${path}.br`, small);
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  return small.length;
}

/** The page finds its files from any depth through <base>; see src/api/console_files.h. */
function makePages() {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  rmSync(join(DIST, "index.html"));
  for (let depth = 0; depth < PAGE_DEPTHS; depth++) {
    const path = join(DIST, "pages", String(depth), "index.html");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, page.replace('<base href="./" />', `<base href="${"../".repeat(depth) || "./"}" />`));
  }
  return page;
}

/** What the page itself names: everything else is loaded when it is needed. */
function firstLoad(page, sizes) {
  const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+\.(?:js|css|svg))"/g)].map((m) => join(DIST, m[1]));
  return named.reduce((sum, path) => sum + sizes.get(path), 0);
}

const isBuilt = () => existsSync(STAMP) && readFileSync(STAMP, "utf8") === fingerprint();

function build() {
  const wanted = fingerprint();
  rmSync(STAMP, { force: true });
  makeReady();
  tool("typescript/bin/tsc", "--noEmit");
  tool("vite/bin/vite.js", "build", "--logLevel", "warn");
  const page = makePages();
  const sizes = new Map(filesIn(DIST).map((path) => [path, compress(path)]));
  const first = firstLoad(page, sizes);
  if (first > FIRST_LOAD_MAX) throw new Error(`The console's first load is ${first} bytes; at most ${FIRST_LOAD_MAX} are allowed`);
  writeFileSync(STAMP, wanted);
}

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 18 || (major === 18 && minor < 19)) {
  console.error(`The web console needs node 18.19 or newer; ${process.execPath} is ${process.versions.node}.`);
  process.exit(1);
}
try {
  useMade(HERE, isBuilt, build, () => undefined);
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.stdout.write(failed.stdout ?? "");
  process.exit(1);
}
