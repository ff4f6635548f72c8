/** A story end to end: orders and rewards while server and worker are killed with SIGKILL, again and again. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker, type Client, type RunHandle } from "../src/index.js";
import { end, PawlServer } from "./support/server.js";
import { defineStory, type Order, type Receipt } from "./support/story.js";

const KILLS = Number(process.env.PAWL_STORY_KILLS ?? 6);
const ORDERS = Number(process.env.PAWL_STORY_ORDERS ?? 12);
const SIGNALS = 20;
const WORKER = fileURLToPath(new URL("./support/story-worker.js", import.meta.url));

let server: PawlServer;
let client: Client;
let effects: string;
let worker: ChildProcess;

before(async () => {
  server = await PawlServer.start();
  // Retries must outlast the kills: no budget, and a long deadline.
  client = server.client({ retry: { budget: false, deadlineMs: 120_000, maxMs: 500 } });
  effects = join(server.folder, "effects");
  writeFileSync(effects, "");
});
after(async () => {
  await end(worker, "SIGKILL");
  await server.stop();
});

function startWorker(): void {
  worker = spawn(process.execPath, [WORKER, server.url, effects], { stdio: ["ignore", "ignore", "ignore"] });
}

/** Kills server and worker in turn, while the story goes on. */
async function killInTurn(): Promise<void> {
  for (let kill = 0; kill < KILLS; kill += 1) {
    await anEffect();
    if (kill % 2 === 0) {
      await server.kill();
      await server.start();
    } else {
      await end(worker, "SIGKILL");
      startWorker();
    }
  }
}

/** Something has happened since: a kill is in the middle of work, not in a pause before it. */
async function anEffect(): Promise<void> {
  const count = readFileSync(effects, "utf8").length;
  await client.start("story-order", { id: 1000 + count }, { key: `tick-${count}` });
  for (let i = 0; i < 100 && readFileSync(effects, "utf8").length === count; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function decide(run: RunHandle<Receipt>, id: number): Promise<void> {
  const question = await run.approval();
  if (id % 3 === 0) await client.approvals.reject(question, { key: `decide-${id}` });
  else await client.approvals.approve(question, { key: `decide-${id}` });
}

async function order(id: number): Promise<Receipt> {
  const run = await client.start<Order, Receipt>("story-order", { id }, { key: `order-${id}` });
  const again = await client.start<Order, Receipt>("story-order", { id }, { key: `order-${id}` });
  assert.equal(again.id, run.id);
  await decide(run, id);
  return run.result();
}

async function earn(): Promise<void> {
  for (let i = 0; i < SIGNALS; i += 1) {
    const signal = (): Promise<unknown> =>
      client.entities.signal("story-rewards", "ada", "add", { points: 1 }, { dedup_key: `order-${i}` });
    await Promise.all([signal(), signal()]);
  }
}

async function pointsOf(total: number): Promise<number> {
  for await (const event of client.entities.watch("story-rewards", "ada")) {
    if (event.type !== "entity.handled") continue;
    const { state } = await client.entities.get("story-rewards", "ada");
    if ((state as { points: number }).points >= total) break;
  }
  return ((await client.entities.get("story-rewards", "ada")).state as { points: number }).points;
}

test("nothing is lost or done twice through kills of server and worker", { timeout: 600_000 }, async () => {
  await client.apply(defineStory(new Worker(client, { queues: ["story"] }), () => undefined));
  await client.entities.defineType("story-rewards", { queue: "story", handler: "story-rewards" });
  startWorker();
  const ids = Array.from({ length: ORDERS }, (_, i) => i);
  const [receipts] = await Promise.all([Promise.all(ids.map(order)), earn(), killInTurn()]);

  receipts.forEach((receipt, id) => {
    assert.deepEqual(receipt, { charge: `charge-${id}`, outcome: id % 3 === 0 ? "refunded" : "shipped" });
  });
  const runs = await client.runs.list({ workflow_id: "story-order", status: "succeeded", limit: 200 }).all();
  assert.equal(runs.length, ORDERS);
  assert.equal(await pointsOf(SIGNALS), SIGNALS);

  // A side effect may be tried twice, but only under one key: two for each order.
  const jobs = new Set(await Promise.all(runs.map(async ({ id }) => (await client.runs.get(id)).steps[0]?.job_id)));
  const lines = readFileSync(effects, "utf8").trim().split("\n");
  const keys = [...new Set(lines)].filter((key) => jobs.has(key.split(":")[0]));
  assert.equal(keys.length, 2 * ORDERS);
  assert.ok((await client.admin.doctor()).ok);
});
