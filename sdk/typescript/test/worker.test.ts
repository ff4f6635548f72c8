/** The shared fixtures for workers, durable functions and entity handlers. */

import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import {
  Client,
  TaskError,
  Worker,
  type ClaimedJob,
  type EntityContext,
  type EntityInput,
  type TaskContext,
} from "../src/index.js";
import { answerCall } from "../src/worker/entity.js";
import { jobError } from "../src/worker/errors.js";
import { Execution } from "../src/worker/execution.js";
import {
  assertContains,
  assertRequest,
  canonical,
  cases,
  offline,
  responseOf,
  type Json,
  type Members,
  type SentRequest,
  type WireAnswer,
  type WireRequest,
} from "./support/fixtures.js";
import { settle, VirtualClock } from "./support/virtual.js";

interface Failure {
  code: string;
  message: string;
  retryable?: boolean;
}

function taskError({ code, message, retryable = true }: Failure): TaskError {
  return new TaskError(code, message, { retryable });
}

describe("a worker", () => {
  interface Entry {
    at_ms: number;
    out?: { op: string; job_id?: string; body: Json };
    answer?: WireAnswer;
    begins?: string;
    ends?: { job_id: string; output?: Json; error?: Failure };
    progress?: { job_id: string; value: Json };
    cancelled?: string;
    stop?: true;
    stopped?: true;
  }
  interface Case {
    worker: { worker_id: string; queues: string[]; concurrency: number; lease_ms: number; wait_ms: number };
    script: Entry[];
  }

  const OPERATIONS: Record<string, string> = {
    "/api/v1/jobs/claim": "claimJobs",
    "/api/v1/jobs:complete": "completeJobs",
    heartbeat: "heartbeatJob",
    release: "releaseJob",
  };

  /** What the worker did, each with its time; in the order of the script where times are equal. */
  class Observer {
    readonly seen: string[] = [];
    constructor(readonly clock: VirtualClock) {}

    note(what: Members): void {
      this.seen.push(canonical({ at_ms: this.clock.now(), ...what }));
    }
  }

  /** Plays the server's part of a script. */
  class Script {
    readonly #left: Entry[];
    readonly handlers = new Map<string, { resolve: (output: unknown) => void; reject: (error: unknown) => void }>();
    readonly contexts = new Map<string, TaskContext>();

    constructor(
      readonly clock: VirtualClock,
      readonly observer: Observer,
      entries: Entry[],
    ) {
      this.#left = entries.filter((entry) => entry.out !== undefined);
    }

    answer = async ({ path, body = null }: SentRequest, signal: AbortSignal | null | undefined): Promise<Response> => {
      const [, jobId, verb] = /^\/api\/v1\/jobs\/([^/]+)\/(\w+)$/.exec(path) ?? [];
      const op = OPERATIONS[path] ?? OPERATIONS[verb ?? ""] ?? path;
      this.observer.note({ out: jobId === undefined ? { op, body } : { op, job_id: jobId, body } });
      const index = this.#left.findIndex((entry) => entry.out?.op === op && entry.out.job_id === jobId);
      const [entry] = this.#left.splice(index, index === -1 ? 0 : 1);
      const answer = entry?.answer ?? { status: 500 };
      if (answer.took_ms !== undefined) await this.clock.sleep(answer.took_ms, signal ?? undefined);
      return responseOf(answer);
    };

    handle = (_input: unknown, context: TaskContext): Promise<unknown> => {
      const { job_id } = context.job;
      this.observer.note({ begins: job_id });
      this.contexts.set(job_id, context);
      context.signal.addEventListener("abort", () => {
        this.observer.note({ cancelled: job_id });
      });
      return new Promise((resolve, reject) => {
        this.handlers.set(job_id, { resolve, reject });
      });
    };

    /** What the runner does at this entry; the rest is the worker's. */
    act({ ends, progress, stop }: Entry, worker: Worker): void {
      if (progress !== undefined) this.contexts.get(progress.job_id)?.setProgress(progress.value);
      if (ends?.error !== undefined) this.handlers.get(ends.job_id)?.reject(taskError(ends.error));
      else if (ends !== undefined) this.handlers.get(ends.job_id)?.resolve(ends.output);
      if (stop === true) void worker.stop();
    }
  }

  for (const one of cases<Case>("worker")) {
    test(one.name, async () => {
      const clock = new VirtualClock();
      const observer = new Observer(clock);
      const script = new Script(clock, observer, one.script);
      const url = "http://127.0.0.1:7295";
      const client = new Client({ url, clock, fetch: (input, init) => send(script, input, init) });
      const { worker_id: id, queues, concurrency, lease_ms: lease, wait_ms: wait } = one.worker;
      const worker = new Worker(client, { id, queues, concurrency, lease, wait, onError: () => undefined });
      worker.task("h", script.handle);
      const running = worker.run({ handleSignals: false }).then(() => {
        observer.note({ stopped: true });
      });
      for (const time of new Set(one.script.map((entry) => entry.at_ms))) {
        await clock.advanceTo(time);
        for (const entry of one.script.filter(({ at_ms }) => at_ms === time)) script.act(entry, worker);
        await settle();
      }
      await running;
      const expected = one.script.filter((entry) => !entry.ends && !entry.progress && !entry.stop).map(expectation);
      assert.deepEqual(observer.seen.toSorted(byTime), expected.toSorted(byTime));
    });
  }

  test("writes a TaskError in one line, and any other error with its stack", () => {
    const worker = new Worker(new Client({ url: "http://127.0.0.1:7295" }), { queues: ["q"] });
    const job = { job_id: "j1", handler: "cards.charge" } as ClaimedJob;
    const written = mock.method(console, "error", () => undefined);
    const unexpected = new TypeError("x is undefined");
    worker.handlerFailed(new TaskError("CARD_DECLINED", "no funds"), job);
    worker.handlerFailed(unexpected, job);
    mock.restoreAll();
    const who = "pawl worker: cards.charge (job j1):";
    assert.deepEqual(
      written.mock.calls.map((call) => call.arguments as unknown[]),
      [
        [who, "CARD_DECLINED: no funds"],
        [who, unexpected],
      ],
    );
  });

  async function send(script: Script, input: unknown, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input));
    const body = JSON.parse(init.body as string) as Json;
    const request = { method: "POST", url, path: url.pathname, headers: new Headers(init.headers), body };
    return script.answer(request, init.signal);
  }

  function expectation(entry: Entry): string {
    return canonical({ ...entry, answer: undefined });
  }

  /** Entries of the same time may happen in any order. */
  function byTime(a: string, b: string): number {
    const time = (text: string): number => (JSON.parse(text) as Entry).at_ms;
    return time(a) - time(b) || (a < b ? -1 : 1);
  }
});

describe("a durable function", () => {
  interface Operation extends Members {
    returns: Json;
  }
  interface Case {
    job: ClaimedJob;
    program: Operation[];
    exchanges: Array<{ request: WireRequest; answer: WireAnswer }>;
    ran: string[];
    outcome: { output?: Json; error?: Members; suspended?: true; lost?: true };
  }
  const LEASE_MS = 30_000;

  for (const one of cases<Case>("durable")) {
    test(one.name, async () => {
      const exchanges = [...one.exchanges];
      const client = new Client(
        offline((request) => {
          const exchange = exchanges.shift() ?? assert.fail(`one request too many: ${request.path}`);
          assertRequest(request, exchange.request);
          return responseOf(exchange.answer);
        }),
      );
      const ran: string[] = [];
      // Time stands still, but the pauses between attempts are over at once.
      const clock = { now: () => 0, random: () => 0.5, sleep: quickSleep };
      Object.assign(client.transport, { clock });
      const host = { client, leaseMs: LEASE_MS, patience: { maxAttempts: 1 }, handlerFailed: () => undefined };
      const execution = new Execution(host, one.job, (_input: unknown, ctx) => runProgram(one.program, ctx, ran));
      const report = await execution.run();
      execution.end();
      assert.deepEqual(exchanges, []);
      assert.deepEqual(ran, one.ran);
      const { output, error } = one.outcome;
      if (error !== undefined) assertContains(report?.item.error, error);
      else if (output !== undefined) assert.deepEqual(report?.item.output, output);
      else assert.deepEqual([report, execution.isStopped], [undefined, one.outcome.lost === true]);
    });
  }

  /** Heartbeats are not part of these cases: their pause never ends by itself. */
  function quickSleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms !== LEASE_MS / 3) return Promise.resolve();
    return new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => {
        reject(signal.reason as Error);
      });
    });
  }

  async function runProgram(program: Operation[], ctx: TaskContext, ran: string[]): Promise<unknown> {
    const given = new Map<string, unknown>();
    for (const operation of program) {
      if ("return" in operation) return operation.return;
      if ("return_step" in operation) return given.get(operation.return_step as string);
      const [name, value] = await operate(operation, ctx, ran);
      given.set(name, value);
    }
    return undefined;
  }

  async function operate(operation: Operation, ctx: TaskContext, ran: string[]): Promise<[string, unknown]> {
    const { step, sleep, wait_signal, approval, run_workflow, ...rest } = operation as Record<string, unknown>;
    if (typeof step === "string") {
      const retry = rest.max_attempts as number | undefined;
      return [step, await ctx.step(step, () => act(step, operation, ran), retry === undefined ? {} : { retry })];
    }
    if (typeof sleep === "string") {
      const until = typeof rest.until === "string" ? new Date(rest.until) : (rest.ms as number);
      await ctx.sleep(sleep, until);
      return [sleep, null];
    }
    if (typeof wait_signal === "string") {
      const timeout = rest.timeout_ms as number | undefined;
      const options = timeout === undefined ? {} : { timeout };
      return [`signal:${wait_signal}`, await ctx.waitSignal(wait_signal, options)];
    }
    if (typeof approval === "string") {
      const { prompt, ...options } = rest;
      return [approval, await ctx.approval(approval, prompt as string, options)];
    }
    assert.ok(typeof run_workflow === "string");
    return [run_workflow, await ctx.runWorkflow(rest.workflow_id as string, rest.input)];
  }

  function act(name: string, { raises, returns }: Operation, ran: string[]): unknown {
    ran.push(name);
    if (raises !== undefined) throw taskError(raises as unknown as Failure);
    return returns;
  }
});

describe("an entity handler", () => {
  type Action = Record<string, Json>;
  interface Case {
    initial?: Json;
    call: EntityInput;
    handlers: Record<string, Action[]>;
    timers?: Record<string, Action[]>;
    output?: Json;
    fails?: Members;
  }

  for (const one of cases<Case>("entities")) {
    test(one.name, async () => {
      const handlers = {
        initial: () => structuredClone(one.initial ?? {}) as Record<string, Json>,
        signals: handlersOf(one.handlers),
        timers: handlersOf(one.timers ?? {}),
      };
      const answered = answerCall(handlers, one.call, undefined as unknown as TaskContext);
      if (one.fails === undefined) assert.deepEqual(await answered, one.output);
      else assertContains(jobError(await answered.catch((error: unknown) => error)), one.fails);
    });
  }

  function handlersOf(
    actions: Record<string, Action[]>,
  ): Record<string, (payload: unknown, entity: EntityContext<Record<string, Json>>) => unknown> {
    return Object.fromEntries(
      Object.entries(actions).map(([name, list]) => [
        name,
        (_payload: unknown, entity: EntityContext<Record<string, Json>>) => {
          for (const action of list)
            if ("return" in action) return action.return;
            else perform(action, entity);
          return undefined;
        },
      ]),
    );
  }

  function perform(action: Action, entity: EntityContext<Record<string, Json>>): void {
    const [[verb, value] = ["", null]] = Object.entries(action);
    const members = value as Members;
    const timer = members as unknown as { name: string; in_ms?: number; at?: string; payload?: Json };
    switch (verb) {
      case "set":
        Object.assign(entity.state, members);
        break;
      case "add":
        for (const [name, more] of Object.entries(members))
          entity.state[name] = Number(entity.state[name]) + Number(more);
        break;
      case "set_timer":
        entity.setTimer(timer.name, timer.in_ms ?? new Date(timer.at ?? ""), timer.payload);
        break;
      case "cancel_timer":
        entity.cancelTimer(value as string);
        break;
      case "emit":
        entity.emit(members.event as string, members.payload);
        break;
      case "start": {
        const { workflow_id, input, ...options } = members;
        entity.start(workflow_id as string, input, options);
        break;
      }
      case "finish":
        entity.finish();
        break;
      case "reject":
        entity.reject(members.code as string, members.message as string);
        break;
      default:
        assert.fail(`no action ${verb}`);
    }
  }
});
