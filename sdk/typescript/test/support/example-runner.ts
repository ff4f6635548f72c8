/**
 * Runs examples, each a module whose default export is a function, in the folder where the package is installed. Handlers
 * that an example registers and does not run are run here, so that their code is executed too. Prints one line of JSON for
 * each example.
 */

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { pathToFileURL } from "node:url";
import type * as Pawl from "../../src/index.js";
import { Client } from "../../src/index.js";
import { prepareTenant } from "./docs-worker.js";

type Library = typeof Pawl;

interface ExampleModule {
  default: () => Promise<void>;
  worker?: Pawl.Worker & { tasks: string[]; entities: string[]; ran: boolean };
}

const INPUT = { amount: 5, card: "c-1", to: "ada", lines: [1, 2], id: "7", name: "Ada" };
/** The codes with which examples fail on purpose. */
const EXPECTED = ["NO_STOCK"];

/** Runs the handlers that the example has only registered. */
async function drive(library: Library, worker: NonNullable<ExampleModule["worker"]>, queue: string): Promise<void> {
  const client = new library.Client();
  const ann = new library.Client({ actor: "ann" });
  const running = worker.run();
  for (const handler of worker.tasks) {
    const one = library.workflow(queue, [library.step.task("task", handler, { queue })]);
    await client.apply(one);
    const run = await client.start(one, INPUT);
    await run.signal("paid", { amount: 5 }).catch(() => undefined);
    void run
      .approval()
      .then((id) => ann.approvals.approve(id))
      .catch(() => undefined);
    const { status, error } = await run.wait({ timeout: "20s" });
    const code = (error as { cause?: { code?: string } } | null)?.cause?.code ?? "";
    assert.ok(status === "succeeded" || EXPECTED.includes(code), `${handler}: ${status} ${JSON.stringify(error)}`);
  }
  for (const handler of worker.entities) {
    await client.entities.defineType(queue, { queue, handler });
    await client.entities.signal(queue, "a", "add-points", { points: 10 });
    const { result } = await client.entities.update(queue, "a", "redeem", { points: 4 }, { wait: "20s" });
    assert.deepEqual(result, { left: 6 });
  }
  await worker.stop();
  await running;
}

/** Runs an example in a tenant of its own. */
async function runExample(file: string, i: number): Promise<void> {
  process.env.PAWL_TENANT = `example-${i}`;
  await prepareTenant(new Client());
  const example = (await import(pathToFileURL(file).href)) as ExampleModule;
  await example.default();
  const { worker } = example;
  if (worker !== undefined && !worker.ran) await drive(library, worker, `example-${i}`);
}

function tooLong(): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => {
      reject(new Error("takes too long"));
    }, 30_000).unref();
  });
}

const [, , entry = "", ...files] = process.argv;
const library = (await import(pathToFileURL(entry).href)) as Library;
await prepareTenant(new Client({ tenant: "default" }));
for (const [i, file] of files.entries()) {
  let fault: string | undefined;
  try {
    await Promise.race([runExample(file, i), tooLong()]);
  } catch (error) {
    fault = inspect(error);
  }
  process.stdout.write(`${JSON.stringify({ file, fault })}\n`);
}
process.exit(0);
