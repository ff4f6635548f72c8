/** The client and the worker against a real server. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  ApiError,
  ApprovalConflictError,
  expr,
  JobStoppedError,
  KeyReusedError,
  NotFoundError,
  RunFailedError,
  step,
  TaskError,
  verifyWebhook,
  WaitTimeoutError,
  Worker,
  workflow,
  type Client,
  type TaskContext,
  type TenantEvent,
  type WebhookEvent,
  type WorkerOptions,
  type Workflow,
} from "../src/index.js";
import { PawlServer } from "./support/server.js";

let server: PawlServer;
let client: Client;

before(async () => {
  server = await PawlServer.start();
  client = server.client();
});
after(() => server.stop());

/** A promise and what settles it. */
function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Runs a worker around a test. */
async function withWorker(
  queue: string,
  set: (worker: Worker) => void,
  use: (worker: Worker) => Promise<void>,
  options: WorkerOptions = {},
): Promise<void> {
  const worker = new Worker(client, { queues: [queue], onError: () => undefined, ...options });
  set(worker);
  const running = worker.run({ handleSignals: false });
  try {
    await use(worker);
  } finally {
    await worker.stop({ grace: 0 });
    await running;
  }
}

describe("runs", () => {
  const greet = workflow<{ name: string }, { text: string }>("greet", ({ input }) => [
    step.transform("hello", { text: `Hello, ${input.name}!` }),
  ]);
  const parcel = workflow<undefined, string>("parcel", ({ steps }) => [
    step.waitSignal("arrival", ["delivered", "lost"]),
    step.transform("what", steps.arrival?.output?.name),
  ]);
  before(async () => {
    await client.apply(greet);
    await client.apply(parcel);
  });

  test("a start with the same key is the same run", async () => {
    const first = await client.start(greet, { name: "Ada" }, { key: "k-1" });
    const again = await client.start(greet, { name: "Ada" }, { key: "k-1" });
    assert.deepEqual([first.created, again.created, again.id], [true, false, first.id]);
    await assert.rejects(client.start(greet, { name: "Bob" }, { key: "k-1" }), KeyReusedError);
  });

  test("a key may be any text", async () => {
    const first = await client.start(greet, { name: "Ada" }, { key: "Zoë, order 1" });
    assert.equal((await client.start(greet, { name: "Ada" }, { key: "Zoë, order 1" })).id, first.id);
  });

  test("execute gives the output", async () => {
    const { text } = await client.execute(greet, { name: "Ada" });
    assert.equal(text, "Hello, Ada!");
  });

  test("a run that fails is an error with its run", async () => {
    await client.apply(workflow("broken", [step.transform("oops", { x: expr`nil + 1` })]));
    const error = await client.execute("broken").catch((thrown: unknown) => thrown);
    assert.ok(error instanceof RunFailedError);
    assert.deepEqual([error.run.status, error.code], ["failed", "STEP_FAILED"]);
    assert.match(error.message, /in step oops/);
  });

  test("a wait ends with the run, or with its own time", async () => {
    const run = await client.start(parcel);
    await assert.rejects(run.wait({ timeout: "50ms" }), WaitTimeoutError);
    const waiting = run.result({ timeout: "20s" });
    await run.signal("lost", null, { dedup_key: "s" });
    assert.equal(await waiting, "lost");
    assert.equal((await run.signal("lost").catch((error: unknown) => error)) instanceof ApiError, true);
  });

  test("a wait can be broken off", async () => {
    const run = await client.start(parcel);
    const abort = new AbortController();
    const waiting = run.wait({ signal: abort.signal });
    abort.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
  });

  test("watching shows every event once", async () => {
    const run = await client.start(parcel);
    const types: string[] = [];
    for await (const event of run.watch()) {
      assert.equal(event.seq, types.push(event.type));
      if (event.type === "job.scheduled") await run.signal("delivered");
    }
    assert.equal(types[0], "run.created");
    assert.equal(types.at(-1), "run.succeeded");
  });

  test("why says what a run waits for", async () => {
    const run = await client.start(parcel);
    assert.equal((await run.why()).waits_for[0]?.kind, "signal");
    assert.equal((await run.cancel({ reason: "test" })).status, "cancelled");
  });

  test("a change can depend on the version", async () => {
    const run = await client.start(parcel);
    const error = await run.cancel({ if_match: 1 }).catch((thrown: unknown) => thrown);
    assert.ok(ApiError.is(error, "CONCURRENCY_ERROR"));
    assert.equal(error.problem.expected, 1);
  });

  test("lists are read page by page", async () => {
    const label = { batch: "pages" };
    for (let i = 0; i < 5; i += 1) await client.start(greet, { name: `n${i}` }, { labels: label });
    const pages = client.runs.list({ label: "batch:pages", limit: 2 });
    assert.equal((await pages.page()).items.length, 2);
    assert.equal((await pages.all()).length, 5);
  });

  test("what does not exist is a NotFoundError", async () => {
    await assert.rejects(client.start("no-such"), NotFoundError);
  });

  test("a tenant's events can be followed from the beginning", async () => {
    const acme = server.client({ tenant: "events" });
    await acme.apply(greet);
    const run = await acme.start(greet, { name: "Ada" });
    const seen: TenantEvent[] = [];
    for await (const event of acme.events({ types: ["run.*"], after: "0-0" })) {
      seen.push(event);
      if (event.type === "run.succeeded") break;
    }
    assert.deepEqual(
      seen.map((event) => [event.type, event.subject]),
      [
        ["run.created", run.id],
        ["run.succeeded", run.id],
      ],
    );
  });
});

describe("approvals", () => {
  before(async () => {
    await client.apply(
      workflow<{ amount: number }>("refund", ({ input }) => [
        step.approval("ok", `Refund ${input.amount}?`, { content: { amount: input.amount } }),
      ]),
    );
  });

  test("a decision is made once, and its repeats get it back", async () => {
    const run = await client.start("refund", { amount: 120 });
    const id = await run.approval();
    assert.equal((await client.approvals.get(id)).prompt, "Refund 120?");
    assert.equal((await client.approvals.approve(id, { edited: { amount: 100 } })).status, "approved");
    assert.equal((await client.approvals.approve(id)).status, "already_approved");
    await assert.rejects(client.approvals.reject(id), ApprovalConflictError);
    assert.deepEqual(await run.result(), { amount: 100 });
  });

  test("a run that ends without asking is an error", async () => {
    await client.apply(workflow("quick", [step.transform("x", 1)]));
    const run = await client.start("quick");
    await assert.rejects(run.approval(), RunFailedError);
  });
});

describe("workers", () => {
  test("a task gets its input and its output is the step's", async () => {
    await client.apply(workflow("add", [step.task("add", "math.add")], { queue: "add" }));
    await withWorker(
      "add",
      (worker) => worker.task("math.add", (input: { a: number; b: number }) => input.a + input.b),
      async () => {
        assert.equal(await client.execute("add", { a: 1, b: 2 }), 3);
      },
    );
  });

  test("many small jobs are all done once", async () => {
    await client.apply(workflow("many", [step.task("t", "many.t", { for_each: "input.list" })], { queue: "many" }));
    const done = new Map<string, number>();
    await withWorker(
      "many",
      (worker) =>
        worker.task("many.t", (input: number, ctx) => {
          done.set(ctx.key, (done.get(ctx.key) ?? 0) + 1);
          return input * 2;
        }),
      async () => {
        const list = Array.from({ length: 300 }, (_, i) => i);
        const output = await client.execute("many", { list });
        assert.deepEqual(
          output,
          list.map((i) => i * 2),
        );
      },
      { concurrency: 50 },
    );
    assert.deepEqual([done.size, new Set(done.values()).size], [300, 1]);
  });

  test("a failure is retried, undone, and keeps its code", async () => {
    const trip = workflow(
      "trip",
      [
        step.task("flight", "flights.book", { compensate: "flights.cancel" }),
        step.task("pay", "cards.charge", { retry: { max_attempts: 3, backoff_ms: 1 } }),
      ],
      { queue: "trip" },
    );
    await client.apply(trip);
    const calls: string[] = [];
    await withWorker(
      "trip",
      (worker) =>
        worker
          .task("flights.book", () => ({ seat: "1A" }))
          .task("flights.cancel", (input: { output: unknown }) => calls.push(`undo ${JSON.stringify(input.output)}`))
          .task("cards.charge", (_input, ctx) => {
            calls.push(`attempt ${ctx.attempt}`);
            if (ctx.attempt < 2) throw new Error("busy");
            throw new TaskError("CARD_DECLINED", "no funds", { retryable: false });
          }),
      async () => {
        const run = await (await client.start(trip)).wait();
        assert.equal(run.status, "failed");
        assert.equal((run.error as { cause: { code: string } }).cause.code, "CARD_DECLINED");
      },
    );
    assert.deepEqual(calls, ["attempt 1", "attempt 2", 'undo {"seat":"1A"}']);
  });

  test("a cancelled run aborts its handler", async () => {
    await client.apply(workflow("slow", [step.task("t", "slow.t")], { queue: "slow" }));
    const began = deferred();
    const stopped = deferred<unknown>();
    await withWorker(
      "slow",
      (worker) =>
        worker.task("slow.t", async (_input, ctx) => {
          began.resolve();
          await new Promise((resolve) => {
            ctx.signal.addEventListener("abort", resolve);
          });
          stopped.resolve(ctx.signal.reason);
        }),
      async () => {
        const run = await client.start("slow");
        await began.promise;
        await run.cancel();
        const reason = await stopped.promise;
        assert.ok(reason instanceof JobStoppedError);
      },
      { lease: "300ms" },
    );
  });

  test("a worker that stops finishes what it has begun", async () => {
    await client.apply(workflow("last", [step.task("t", "last.t")], { queue: "last" }));
    const began = deferred();
    const go = deferred();
    const worker = new Worker(client, { queues: ["last"] }).task("last.t", async () => {
      began.resolve();
      await go.promise;
      return "done";
    });
    const running = worker.run({ handleSignals: false });
    const run = await client.start("last");
    await began.promise;
    const stopping = worker.stop();
    go.resolve();
    await Promise.all([stopping, running]);
    assert.equal(await run.result(), "done");
  });

  test("after its grace a worker gives its jobs back, at no cost", async () => {
    await client.apply(workflow("hand-over", [step.task("t", "over.t")], { queue: "over" }));
    const began = deferred();
    const stuck = new Worker(client, { queues: ["over"], lease: "1h" }).task("over.t", () => {
      began.resolve();
      return new Promise(() => undefined);
    });
    const running = stuck.run({ handleSignals: false });
    const run = await client.start("hand-over");
    await began.promise;
    await stuck.stop({ grace: 0 });
    await running;
    await withWorker(
      "over",
      (worker) => worker.task("over.t", (_input, ctx) => ctx.attempt),
      async () => {
        assert.equal(typeof (await run.result()), "number");
      },
    );
  });

  test("a worker whose server is gone stops after its grace, and says what it could not report", async () => {
    const other = await PawlServer.start();
    const there = other.client();
    await there.apply(workflow("gone", [step.task("t", "gone.t")]));
    const began = deferred();
    const go = deferred();
    const errors: unknown[] = [];
    const worker = new Worker(there, { onError: (error) => errors.push(error) }).task("gone.t", async () => {
      began.resolve();
      await go.promise;
    });
    const running = worker.run({ handleSignals: false });
    await there.start("gone");
    await began.promise;
    await other.kill();
    go.resolve();
    await worker.stop({ grace: "100ms" });
    await running;
    assert.equal(errors.length, 1);
    await other.stop();
  });

  test("an output that is not JSON fails the job for good", async () => {
    await client.apply(workflow("bigint", [step.task("t", "big.t", { retry: 5 })], { queue: "big" }));
    await withWorker(
      "big",
      (worker) => worker.task("big.t", () => 1n),
      async () => {
        const run = await (await client.start("bigint")).wait();
        assert.equal((run.error as { cause: { code: string } }).cause.code, "OUTPUT_INVALID");
      },
    );
  });

  test("a result that the server refuses does not hurt the others", async () => {
    await client.apply(workflow("large", [step.task("t", "large.t", { for_each: "input" })], { queue: "large" }));
    await withWorker(
      "large",
      (worker) => worker.task("large.t", (size: number) => "x".repeat(size)),
      async () => {
        const run = await (await client.start("large", [1, 700_000, 2])).wait();
        assert.equal((run.error as { cause: { code: string } }).cause.code, "BODY_TOO_LARGE");
      },
    );
  });

  test("a worker without a valid key says so", async () => {
    const worker = new Worker(server.client({ tenant: "not/a tenant" }));
    await assert.rejects(worker.run({ handleSignals: false }), ApiError);
  });
});

describe("a worker process", () => {
  /** Starts a slow job in a worker process, and sends it signals. Its exit code and the run's status. */
  async function interrupted(ms: number, ...signals: NodeJS.Signals[]): Promise<[unknown, string]> {
    await client.apply(workflow("slow-process", [step.task("slow", "slow", { queue: "slow" })]));
    const script = fileURLToPath(new URL("./support/slow-worker.js", import.meta.url));
    const child = spawn(process.execPath, [script, server.url], { stdio: ["ignore", "pipe", "inherit"] });
    const run = await client.start("slow-process", { ms });
    await once(child.stdout, "data");
    const exited = once(child, "exit");
    for (const signal of signals) {
      child.kill(signal);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const [code] = (await exited) as [number | null];
    return [code, (await run.get()).status];
  }

  test("finishes its jobs after SIGTERM, then exits", async () => {
    assert.deepEqual(await interrupted(500, "SIGTERM"), [0, "succeeded"]);
  });

  test("gives its jobs back after a second SIGTERM", async () => {
    const [, status] = await interrupted(3_000_000, "SIGTERM", "SIGTERM");
    assert.equal(status, "running");
    assert.equal((await client.jobs.claim({ worker_id: "heir", queues: ["slow"] })).length, 1);
  });
});

describe("durable functions", () => {
  /** Applies a durable function, and runs a worker for it around a test. */
  async function withFunction<Input, Output>(
    id: string,
    run: (input: Input, context: TaskContext) => Promise<Output>,
    use: (fn: Workflow<Input, Output>) => Promise<void>,
  ): Promise<void> {
    const worker = new Worker(client, { queues: [id], onError: () => undefined });
    const fn = worker.durable(id, run);
    await client.apply(fn);
    const running = worker.run({ handleSignals: false });
    try {
      await use(fn);
    } finally {
      await worker.stop({ grace: 0 });
      await running;
    }
  }

  test("finished steps are not run again, and waits hold nothing", async () => {
    const ran: string[] = [];
    await withFunction(
      "order-fn",
      async (input: { amount: number }, ctx) => {
        const charge = await ctx.step("charge", ({ key }) => {
          ran.push("charge");
          return { id: `ch-${key.endsWith(":charge")}` };
        });
        await ctx.sleep("pause", "20ms");
        const { door } = await ctx.waitSignal<{ door: string }>("delivered");
        const { content, by } = await ctx.approval("ok", `Pay ${input.amount}?`, { content: { amount: input.amount } });
        await ctx.step("mail", () => {
          ran.push("mail");
        });
        return { charge: charge.id, door, amount: content.amount, by };
      },
      async (order) => {
        const run = await client.start(order, { amount: 5 });
        await run.signal("delivered", { door: "green" });
        await client.approvals.approve(await run.approval({ timeout: "20s" }), { edited: { amount: 4 } });
        assert.deepEqual(await run.result({ timeout: "20s" }), {
          charge: "ch-true",
          door: "green",
          amount: 4,
          by: "dev",
        });
        assert.deepEqual(ran, ["charge", "mail"]);
      },
    );
  });

  test("a rejection can be undone, and the function fails with its code", async () => {
    const ran: string[] = [];
    await withFunction(
      "pay-fn",
      async (_input, ctx) => {
        await ctx.step("charge", () => ran.push("charge"));
        try {
          await ctx.approval("ok", "Ship it?");
        } catch (error) {
          await ctx.step("refund", () => ran.push("refund"));
          throw error;
        }
      },
      async (pay) => {
        const run = await client.start(pay);
        await client.approvals.reject(await run.approval({ timeout: "20s" }), { reason: "no" });
        const ended = await run.wait({ timeout: "20s" });
        assert.equal((ended.error as { cause: { code: string } }).cause.code, "APPROVAL_REJECTED");
        assert.deepEqual(ran, ["charge", "refund"]);
      },
    );
  });

  test("a signal that does not come in time is an error", async () => {
    await withFunction(
      "late-fn",
      async (_input, ctx) =>
        ctx.waitSignal("paid", { timeout: "20ms" }).catch((error: unknown) => (error as TaskError).code),
      async (late) => {
        assert.equal(await client.execute(late, undefined, { timeout: "20s" }), "TIMED_OUT");
      },
    );
  });

  test("a function runs another workflow once", async () => {
    const nap = workflow<{ n: number }, number>("nap", ({ input }) => [
      step.sleep("a", "2500ms"),
      step.transform("b", input.n),
    ]);
    await client.apply(nap);
    await withFunction(
      "parent-fn",
      (_input, ctx) => ctx.runWorkflow(nap, { n: 7 }),
      async (parent) => {
        assert.equal(await client.execute(parent, undefined, { timeout: "30s" }), 7);
        assert.equal((await client.runs.list({ workflow_id: "nap" }).all()).length, 1);
      },
    );
  });

  test("a function whose run is cancelled goes no further, and undoes nothing", async () => {
    const ran: string[] = [];
    const began = deferred();
    const stopped = deferred();
    const run = async (_input: unknown, ctx: TaskContext): Promise<void> => {
      try {
        await ctx.step("slow", async ({ signal }) => {
          signal.addEventListener("abort", () => {
            stopped.resolve();
          });
          began.resolve();
          await stopped.promise;
          throw new Error("aborted");
        });
      } catch {
        ran.push("undo");
      }
    };
    const worker = new Worker(client, { queues: ["cancel"], lease: "300ms", concurrency: 1, onError: () => undefined });
    const fn = worker.durable("cancel-fn", run);
    const next = worker.durable("next-fn", () => "free");
    await client.apply(fn);
    await client.apply(next);
    const running = worker.run({ handleSignals: false });
    const handle = await client.start(fn);
    await began.promise;
    await handle.cancel();
    assert.equal(await client.execute(next, undefined, { timeout: "20s" }), "free"); // its slot is free again
    assert.deepEqual(ran, []);
    await worker.stop();
    await running;
  });

  test("a worker of all tenants runs workflows in the tenant of its job", async () => {
    const acme = client.withTenant("all-tenants");
    await acme.apply(workflow("hello", [step.transform("a", "hello")]));
    const worker = new Worker(client.withTenant("*"), { queues: ["all"], onError: () => undefined });
    const fn = worker.durable("all-fn", (_input, ctx) => ctx.runWorkflow("hello"));
    await acme.apply(fn);
    const running = worker.run({ handleSignals: false });
    assert.equal(await acme.execute(fn, undefined, { timeout: "20s" }), "hello");
    await worker.stop();
    await running;
  });

  test("a step beside a wait is stored before the function is suspended", async () => {
    let ran = 0;
    const slow = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return (ran += 1);
    };
    const beside = (_input: unknown, ctx: TaskContext): Promise<unknown> =>
      Promise.all([ctx.step("slow", slow), ctx.sleep("nap", "20ms")]);
    await withFunction("beside-fn", beside, async (fn) => {
      assert.deepEqual(await client.execute(fn, undefined, { timeout: "20s" }), [1, null]);
      assert.equal(ran, 1);
    });
  });

  test("two waits at a time are a mistake", async () => {
    await withFunction(
      "two-fn",
      (_input, ctx) =>
        Promise.all([ctx.sleep("a", "1h"), ctx.sleep("b", "1h")]).catch((error: unknown) => {
          throw new TaskError("MISTAKE", String(error), { retryable: false });
        }),
      async (two) => {
        const run = await (await client.start(two)).wait({ timeout: "20s" });
        assert.equal((run.error as { cause: { code: string } }).cause.code, "MISTAKE");
      },
    );
  });
});

describe("entities", () => {
  test("signals, updates, timers and rejections", async () => {
    await client.entities.defineType("rewards", { queue: "rewards", handler: "rewards" });
    await withWorker(
      "rewards",
      (worker) =>
        worker.entity<{ points: number }>("rewards", {
          initial: () => ({ points: 0 }),
          signals: {
            add(payload: { points: number }, entity) {
              entity.state.points += payload.points;
              entity.setTimer("idle", "1h");
            },
            redeem(payload: { points: number }, entity) {
              if (payload.points > entity.state.points) entity.reject("TOO_FEW", `there are ${entity.state.points}`);
              entity.state.points -= payload.points;
              return { left: entity.state.points };
            },
          },
        }),
      async () => {
        const add = { points: 10 };
        const first = await client.entities.signal("rewards", "c/1", "add", add, { dedup_key: "o-1" });
        const again = await client.entities.signal("rewards", "c/1", "add", add, { dedup_key: "o-1" });
        assert.deepEqual([first.duplicate, again.duplicate, again.seq], [false, true, first.seq]);
        const rejected = await client.entities.update("rewards", "c/1", "redeem", { points: 50 });
        assert.deepEqual([rejected.status, rejected.error?.code], ["rejected", "TOO_FEW"]);
        const { status, result } = await client.entities.update("rewards", "c/1", "redeem", { points: 4 });
        assert.deepEqual([status, result], ["completed", { left: 6 }]);
        const { state, timers } = await client.entities.get("rewards", "c/1");
        assert.deepEqual([state, timers[0]?.name], [{ points: 6 }, "idle"]);
      },
    );
  });
});

describe("webhooks", () => {
  test("what the server sends is verified with its secret", async () => {
    const received = deferred<WebhookEvent>();
    let secret = "";
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        void verifyWebhook(Buffer.concat(chunks), request.headers, secret).then((event) => {
          response.writeHead(204).end();
          received.resolve(event);
        });
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    const hook = await client.webhooks.create({ url: `http://127.0.0.1:${port}/`, events: ["run.*"] });
    secret = hook.secret ?? "";
    await client.webhooks.test(hook.id);
    assert.equal((await received.promise).type, "webhook.test");
    await client.webhooks.delete(hook.id);
    receiver.closeAllConnections();
    receiver.close();
  });
});
