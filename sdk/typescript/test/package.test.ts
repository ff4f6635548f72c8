/** The package as users get it: it installs, imports, has types, and every example works. */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import * as library from "../src/index.js";
import { exampleWorker } from "./support/docs-worker.js";
import { docExamples, folderExamples, pageExamples, undocumented, type Example } from "./support/examples.js";
import { PAWL_BIN, PawlServer } from "./support/server.js";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(HERE, "node_modules/typescript/bin/tsc");
const RUNNER = fileURLToPath(new URL("./support/example-runner.js", import.meta.url));

let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-package-"));
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
    cwd: HERE,
  });
  const [packed] = JSON.parse(stdout) as Array<{ filename: string }>;
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "clean", private: true, type: "module" }));
  await run("npm", ["install", "--offline", "--no-audit", join(folder, packed?.filename ?? "")], { cwd: folder });
});
after(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("the package", () => {
  const installed = (): string => join(folder, "node_modules/pawl");

  test("has no dependencies, and only what it needs", () => {
    const manifest = JSON.parse(readFileSync(join(installed(), "package.json"), "utf8")) as Record<string, unknown>;
    assert.equal(manifest.dependencies, undefined);
    assert.throws(() => readFileSync(join(installed(), "src/index.ts")));
    readFileSync(join(installed(), "README.md"));
    readFileSync(join(installed(), "LICENSE"));
  });

  test("exports in a clean folder what the sources export", async () => {
    const code = 'import * as pawl from "pawl"; console.log(JSON.stringify(Object.keys(pawl)))';
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: folder });
    assert.deepEqual((JSON.parse(stdout) as string[]).toSorted(), Object.keys(library).toSorted());
  });

  test("runs the first workflow of the README as it is written", async () => {
    const server = await PawlServer.start();
    const [first] = pageExamples(join(HERE, "README.md"));
    const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
    writeFileSync(join(folder, "order.mjs"), ts.transpile(first?.code ?? "", options));
    try {
      const env = { ...process.env, PAWL_URL: server.url };
      const { stdout } = await run(process.execPath, ["order.mjs"], { cwd: folder, env });
      assert.equal(stdout, "order 791 is on its way\n");
    } finally {
      await server.stop();
    }
  });

  test("runs the project that `pawl new typescript` makes", async () => {
    const server = await PawlServer.start();
    const project = join(folder, "project"); // it finds the library in the folder above
    await run(PAWL_BIN, ["new", "typescript", project]);
    const types = join(HERE, "node_modules/@types");
    await run(process.execPath, [TSC, "-p", project, "--typeRoots", types, "--types", "node"]);
    const worker = spawn(process.execPath, ["dist/worker.js"], {
      cwd: project,
      env: { ...process.env, PAWL_URL: server.url },
      stdio: "inherit",
    });
    try {
      const client = new library.Client({ url: server.url });
      const orders = async (): Promise<boolean> =>
        (await run(PAWL_BIN, ["workflow", "show", "order", "--url", server.url]).catch(() => null)) !== null;
      while (!(await orders()));
      const order = await client.start("order", { card: "visa-1", amount: 30, to: "Ada" }, { key: "order-1" });
      assert.deepEqual(await order.result(), { shipped: "Ada" });
    } finally {
      worker.kill();
      await server.stop();
    }
  });

  test("needs nothing of Node: the client works with what a browser has", async () => {
    const server = await PawlServer.start();
    const code = `
      await fetch("${server.url}/healthz"); // Node's own fetch loads what it needs
      for (const name of ["process"]) delete globalThis[name];
      const { Client, step, workflow } = await import("pawl");
      const client = new Client({ url: "${server.url}" });
      await client.apply(workflow("hi", [step.transform("a", 1)]));
      const run = await client.start("hi");
      for await (const event of run.watch()) if (event.type === "run.succeeded") console.log(await run.result());`;
    try {
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: folder });
      assert.equal(stdout, "1\n");
    } finally {
      await server.stop();
    }
  });

  test("has the types that were made of docs/openapi.yaml", () => {
    const spec = readFileSync(join(HERE, "../../docs/openapi.yaml"), "utf8");
    const types = readFileSync(join(installed(), "dist/wire.d.ts"), "utf8");
    assert.match(spec, /^    StartedRun:$/m);
    assert.match(types, /^export interface StartedRun /m);
  });

  test("documents everything that it exports, with examples", () => {
    assert.deepEqual(undocumented(join(HERE, "src/index.ts")), []);
  });
});

describe("the examples", () => {
  const readme = pageExamples(join(HERE, "README.md"));
  const guide = folderExamples(join(HERE, "../../docs"), readme);
  const examples: Example[] = [...readme, ...guide, ...docExamples(join(HERE, "src"))];

  test("the first workflow of the README has at most 25 lines", () => {
    const lines = examples[0]?.code.trim().split("\n") ?? [];
    assert.ok(lines.length <= 25, `${lines.length} lines`);
    for (const word of ["retry", "approval", "charge", "refund"])
      assert.match(examples[0]?.code ?? "", new RegExp(word));
  });

  test("the first workflow is the same everywhere", () => {
    const { code = "" } = examples[0] ?? {};
    assert.equal(readFileSync(join(HERE, "examples/order.mts"), "utf8"), code);
    assert.ok(readFileSync(join(HERE, "../../docs/first-workflow.md"), "utf8").includes(code));
  });

  test("compile in strict mode, run, and print what they say", { timeout: 180_000 }, async () => {
    mkdirSync(join(folder, "examples"), { recursive: true });
    cpSync(join(HERE, "test/support/example-support.ts"), join(folder, "examples/support.ts"));
    const files = examples.map((example, i) => write(example, i));
    const options = {
      target: "ES2022",
      module: "NodeNext",
      strict: true,
      skipLibCheck: true,
      types: ["node"],
      typeRoots: [join(HERE, "node_modules/@types")],
      outDir: "out",
      rootDir: "examples",
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["examples"] }));
    await run(process.execPath, [TSC, "-p", folder], { cwd: folder }).catch((error: unknown) => {
      assert.fail((error as { stdout: string }).stdout);
    });
    const faults = await runAll(files.map((file) => join(folder, "out", file.replace(/\.ts$/, ".js"))));
    assert.deepEqual(faults, []);
  });

  /** Writes an example as a module. What it prints is compared with the comment behind it. */
  function write({ name, code }: Example, i: number): string {
    const imports =
      code.match(/^import .*$/gm)?.join("\n") ?? `import { ${Object.keys(library).join(", ")} } from "pawl";`;
    const body = code
      .replace(/^import .*$/gm, "")
      .replace(/console\.log\((.*)\); \/\/ (.*)$/gm, (_, values: string, text: string) => {
        return `check(${JSON.stringify(text)}, ${values});`;
      });
    const whole = code.includes("import ");
    const file = `e${i}.ts`;
    writeFileSync(
      join(folder, "examples", file),
      whole ? wholeModule(name, imports, body) : partModule(name, imports, body, i),
    );
    return file;
  }

  function wholeModule(name: string, imports: string, body: string): string {
    return `// ${name}\n${imports}\nimport { check } from "./support.js";\nvoid check;\nexport default async function () {\n${body}\n}\n`;
  }

  function partModule(name: string, imports: string, body: string, i: number): string {
    return `// ${name}
${imports}
import { check, ExampleWorker } from "./support.js";
void check;
const client = new Client();
export const worker = new ExampleWorker(client, { queues: ["example-${i}"], onError: () => undefined });
export default async function () {
${body.replaceAll('"14d"', '"10ms"')}
}
`;
  }

  async function runAll(files: string[]): Promise<string[]> {
    const server = await PawlServer.start();
    const docs = exampleWorker(server.client({ tenant: "*" }));
    const serving = docs.run({ handleSignals: false });
    const entry = join(folder, "node_modules/pawl/dist/index.js");
    const env = { ...process.env, PAWL_URL: server.url };
    const child = spawn(process.execPath, [RUNNER, entry, ...files], {
      env,
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const faults: string[] = [];
    let count = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{"file"')) continue;
      const { file, fault } = JSON.parse(line) as { file: string; fault?: string };
      count += 1;
      const { name } = examples[files.indexOf(file)] ?? { name: file };
      if (fault !== undefined) faults.push(`${name}: ${fault}`);
    }
    await docs.stop({ grace: 0 });
    await serving;
    await server.stop();
    if (count !== files.length) faults.push(`${count} of ${files.length} examples were run`);
    return faults;
  }
});
