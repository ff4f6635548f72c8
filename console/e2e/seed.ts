// A tenant in which something of everything has happened, for tests that look at pages.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { REFUND, type Claimed, type Server } from "./server";

export interface Seeded {
  failed: string; // a run that failed after a step that was then undone
  waiting: string; // a run that waits for approval
  approval: string;
  webhook: string;
  end: () => void;
}

/** A receiver of webhooks that refuses every second message. */
async function receiver(): Promise<{ url: string; end: () => void }> {
  let count = 0;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(count++ % 2 === 0 ? 204 : 503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const end = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/pawl`, end };
}

const start = (server: Server, input: unknown, more: object = {}): Promise<{ run_id: string }> =>
  server.call("POST", "workflows/refund/runs", { input, labels: { team: "shop" }, ...more });

const failAtOnce = (server: Server, job: Claimed): Promise<unknown> =>
  server.call("POST", `jobs/${job.job_id}/fail`, {
    lease_token: job.lease_token,
    error: { code: "NO_SUCH_MAILBOX", message: "550 ada@example.com", retryable: false },
  });

async function approvalOf(server: Server, run: string): Promise<string> {
  const { items } = await server.call<{ items: Array<{ job_id: string; run_id: string }> }>("GET", "approvals?status=pending");
  return items.find((item) => item.run_id === run)?.job_id ?? "";
}

/** Looked up, approved, paid; the mail fails, so the payment is undone. */
async function failedRun(server: Server): Promise<string> {
  const { run_id } = await start(server, { order: "B-1", amount: 12 });
  await server.complete(await server.claim(), { customer: "Ada" });
  await server.call("POST", `approvals/${await approvalOf(server, run_id)}/approve`, { reason: "Within the limit" });
  for (let jobs = 0; jobs < 2; jobs++) {
    const job = await server.claim();
    if (job.step === "pay") await server.complete(job, { paid: 12 });
    else await failAtOnce(server, job);
  }
  await server.complete(await server.claim(), { undone: true });
  return run_id;
}

/** A client that had no answer and asked again, with the same key. */
async function waitingRun(server: Server): Promise<string> {
  const body = { idempotency_key: "order-99" };
  const { run_id } = await start(server, { order: "B-2", amount: 99 }, body);
  await start(server, { order: "B-2", amount: 99 }, body);
  await server.fail(await server.claim(), "The database is busy");
  await server.complete(await server.claim(), { customer: "Grace" });
  return run_id;
}

async function entities(server: Server): Promise<void> {
  await server.call("PUT", "entity-types/cart", { queue: "carts", handler: "cart.apply" });
  for (const key of ["click-1", "click-1", "click-2"])
    await server.call("POST", "entities/cart/ada/signals", { name: "add", payload: { item: "book" }, dedup_key: key });
  await server.complete(await server.claim("carts"), {
    state: { items: ["book", "book"] },
    set_timers: [{ name: "abandoned", in_ms: 3_600_000, payload: { remind: true } }],
  });
  await server.call("POST", "entities/cart/grace/signals", { name: "add", payload: { item: "pen" } });
}

async function connections(server: Server, url: string): Promise<string> {
  await server.call("PUT", "schedules/every-morning", {
    workflow_id: "refund",
    cron: "0 9 * * 1-5",
    timezone: "Europe/Berlin",
    input: { order: "S", amount: 1 },
  });
  await server.call("PUT", "schedules/month-end", { workflow_id: "refund", cron: "0 0 1 * *", input: { order: "M", amount: 1 }, paused: true });
  const { id } = await server.call<{ id: string }>("POST", "webhooks", { url, events: ["run.*"], description: "The shop" });
  for (let n = 0; n < 2; n++) await server.call("POST", `webhooks/${id}/test`, {});
  await server.call("POST", "keys", { role: "worker", label: "The worker of the shop" });
  await server.call("PUT", "tenants/globex", { max_concurrent_runs: 50, at_limit: "queue" });
  return id;
}

/** A limit of four with four runs under it, and one that waits. */
async function limits(server: Server): Promise<void> {
  await server.call("PUT", "tenants/default", { max_concurrent_runs: 10, max_queued_runs: 100, at_limit: "queue" });
  await server.call("PUT", "tenants/default", { max_concurrent_runs: 4, max_queued_runs: 100, at_limit: "queue" });
  for (let n = 0; n < 4; n++) await start(server, { order: `C-${n}`, amount: 40 + n });
}

export async function seed(server: Server): Promise<Seeded> {
  const hooks = await receiver();
  await server.call("PUT", "workflows/refund", REFUND);
  const webhook = await connections(server, hooks.url);
  const failed = await failedRun(server);
  const waiting = await waitingRun(server);
  await server.call("PUT", "workflows/refund", { ...REFUND, timeout_s: 86_400, concurrency: { key: "input.order", limit: 1 } });
  await entities(server);
  await limits(server);
  return { failed, waiting, approval: await approvalOf(server, waiting), webhook, end: hooks.end };
}
