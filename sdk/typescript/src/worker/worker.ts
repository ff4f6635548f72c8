/** A worker: claims jobs, runs handlers, reports results. */

import type { Client } from "../client.js";
import { step, workflow, type TaskOptions, type Workflow } from "../definition.js";
import { toMs, type Duration } from "../duration.js";
import { ApiError, NoAnswerError, PawlError } from "../errors.js";
import type { RetryOptions } from "../retry.js";
import type { ClaimedJob, ClaimJobs, EntityAnswer, EntityInput, JobsResult } from "../wire.js";
import type { TaskContext } from "./context.js";
import { answerCall, type EntityHandlers } from "./entity.js";
import { TaskError } from "./errors.js";
import { Execution, type ExecutionHost, type Handler, type Report } from "./execution.js";

/** Options of a worker. */
export interface WorkerOptions {
  /** The queues, searched in this order; default `["default"]`. */
  queues?: string[];
  /** How many jobs run at a time; default 10. */
  concurrency?: number;
  /** How long a job stays this worker's without a heartbeat; default 30 s. Heartbeats are sent every third of it. */
  lease?: Duration;
  /** The worker's name; default: random. */
  id?: string;
  /** How long a claim waits for a job; default 20 s. */
  wait?: Duration;
  /** Called with errors that handlers throw, and with what fails outside of handlers. Default: writes to the console. */
  onError?: (error: unknown, job?: ClaimedJob) => void;
}

/** Options of a durable workflow. `retry` counts errors outside of steps; default: 20 attempts. Finished steps are kept. */
export type DurableOptions = Pick<TaskOptions, "queue" | "retry" | "timeout_ms"> & { description?: string };

interface NodeProcess {
  on(name: string, listener: () => void): void;
  off(name: string, listener: () => void): void;
}

const DURABLE_ATTEMPTS = 20;
const MAX_ITEMS = 100;
/** A request may have 1 MiB; an output alone 512 KiB. */
const MAX_BATCH_BYTES = 900_000;
/** How long a claim is repeated before the worker says that there is no answer. */
const CLAIM_PATIENCE_MS = 15_000;
/** How long a worker whose grace is over still tries to report results and to give jobs back. */
const GIVE_UP_MS = 5000;
const STOP_SIGNALS = ["SIGTERM", "SIGINT"];

/**
 * Runs handlers for the jobs of some queues. Register handlers, then `await worker.run()`.
 *
 * @example
 * ```ts
 * const worker = new Worker(client, { queues: ["docs"], concurrency: 5 });
 * worker.task("docs.add", (input: { a: number; b: number }) => input.a + input.b);
 * const running = worker.run();
 *
 * await client.apply(workflow("add", [step.task("add", "docs.add", { queue: "docs" })]));
 * console.log(await client.execute("add", { a: 1, b: 2 })); // 3
 * await worker.stop();
 * await running;
 * ```
 */
export class Worker implements ExecutionHost {
  readonly leaseMs: number;
  readonly id: string;
  /** Results and checkpoints must get through: they are repeated long past the lease. */
  readonly patience: RetryOptions;
  readonly #queues: string[];
  readonly #concurrency: number;
  readonly #waitMs: number;
  readonly #onError: (error: unknown, job?: ClaimedJob) => void;
  readonly #handlers = new Map<string, Handler>();
  readonly #executions = new Set<Execution>();
  readonly #results: Report[] = [];
  readonly #noMoreClaims = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #stopped: Promise<void>;
  #finish: () => void = () => undefined;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #isClaiming = false;
  #isReporting = false;
  /** How many results are sent one by one, because a batch was refused. */
  #singles = 0;
  #failure: { error: unknown } | undefined;

  constructor(
    readonly client: Client,
    options: WorkerOptions = {},
  ) {
    this.#queues = options.queues ?? ["default"];
    this.#concurrency = options.concurrency ?? 10;
    this.leaseMs = toMs(options.lease ?? "30s");
    this.#waitMs = toMs(options.wait ?? "20s");
    this.id = options.id ?? `ts-${client.transport.newKey().slice(0, 12)}`;
    this.patience = { budget: false, deadlineMs: this.leaseMs + 600_000 };
    this.#onError = options.onError ?? complain;
    this.#stopped = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /**
   * Registers the handler of a task. It gets the step's input and a context; what it returns is the step's output.
   *
   * @example
   * ```ts
   * worker.task("cards.charge", async (input: { amount: number }, ctx) => {
   *   const answer = await fetch(`${process.env.PAWL_URL}/healthz`, {
   *     headers: { "Idempotency-Key": ctx.key }, // the same in every attempt
   *     signal: ctx.signal, // aborted when the run is cancelled
   *   });
   *   return { status: answer.status, amount: input.amount };
   * });
   * ```
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- without it, a handler that does not name the type of its input would get never
  task<Input = unknown>(handler: string, run: (input: Input, context: TaskContext) => unknown): this {
    if (this.#handlers.has(handler)) throw new TypeError(`The handler ${handler} is registered already`);
    this.#handlers.set(handler, run);
    return this;
  }

  /**
   * Registers a durable function, and returns the workflow that consists of it: apply it once, then start it like any
   * other.
   *
   * @example
   * ```ts
   * const welcome = worker.durable("welcome", async (input: { name: string }, ctx) => {
   *   const text = await ctx.step("write", () => `Welcome, ${input.name}!`);
   *   return { text };
   * });
   * await client.apply(welcome);
   * ```
   */
  durable<Input = unknown, Output = unknown>(
    id: string,
    run: (input: Input, context: TaskContext) => Output | Promise<Output>,
    { description, ...options }: DurableOptions = {},
  ): Workflow<Input, Output> {
    this.task(id, run);
    const queue = options.queue ?? this.#queues[0] ?? "default";
    const head = description === undefined ? {} : { description };
    return workflow<Input, Output>(id, [step.task(id, id, { retry: DURABLE_ATTEMPTS, ...options, queue })], head);
  }

  /**
   * Registers the handler of an entity type: a function for each signal and timer, or one function that gets the whole
   * call and returns its result.
   *
   * @example
   * ```ts
   * worker.entity<{ points: number }>("rewards", {
   *   initial: () => ({ points: 0 }),
   *   signals: {
   *     "add-points"(payload: { points: number }, entity) {
   *       entity.state.points += payload.points;
   *       entity.setTimer("idle", "365d");
   *     },
   *     redeem(payload: { points: number }, entity) {
   *       if (payload.points > entity.state.points) entity.reject("TOO_FEW", `there are ${entity.state.points}`);
   *       entity.state.points -= payload.points;
   *       return { left: entity.state.points };
   *     },
   *   },
   *   timers: {
   *     idle(_payload, entity) {
   *       entity.state.points = 0;
   *     },
   *   },
   * });
   * ```
   */
  entity<State>(
    handler: string,
    handlers:
      EntityHandlers<State> | ((call: EntityInput, context: TaskContext) => EntityAnswer | Promise<EntityAnswer>),
  ): this {
    if (typeof handlers === "function") return this.task(handler, handlers);
    return this.task(handler, (call: EntityInput, context) => answerCall(handlers, call, context));
  }

  /**
   * Works until {@link Worker.stop} is called. In Node, SIGTERM and SIGINT stop the worker too; a second one gives its
   * jobs back at once. A handler that ignores `ctx.signal` may keep the process alive after that: call `process.exit()`.
   *
   * @example
   * ```ts
   * const running = worker.run();
   * await worker.stop();
   * await running;
   * ```
   */
  async run({ handleSignals = true }: { handleSignals?: boolean } = {}): Promise<void> {
    if (this.#state !== "new") throw new TypeError("A worker runs once: make another");
    this.#state = "running";
    const restore = handleSignals ? this.#stopOnSignals() : undefined;
    this.#advance();
    await this.#stopped;
    restore?.();
    if (this.#failure !== undefined) throw this.#failure.error as Error;
  }

  /**
   * Stops claiming, lets running handlers finish and reports them. After `grace`, those that are still running are asked
   * to stop (`ctx.signal`) and their jobs are given back to other workers.
   *
   * @example
   * ```ts
   * const running = worker.run();
   * await worker.stop({ grace: "10s" });
   * await running;
   * ```
   */
  async stop({ grace }: { grace?: Duration } = {}): Promise<void> {
    if (this.#state === "new") return;
    if (this.#state === "running") this.#state = "stopping";
    this.#noMoreClaims.abort();
    this.#advance();
    if (grace !== undefined) await this.#giveBackAfter(toMs(grace));
    await this.#stopped;
  }

  /** Does what can be done now: every change of the worker's state ends here. */
  #advance(): void {
    if (this.#results.length > 0 && !this.#isReporting) void this.#report();
    if (this.#canClaim() && this.#results.length === 0 && !this.#isReporting) void this.#claim();
    const isIdle = this.#executions.size === 0 && this.#results.length === 0;
    if (this.#state === "stopping" && isIdle && !this.#isClaiming && !this.#isReporting) {
      this.#state = "stopped";
      this.#finish();
    }
  }

  #canClaim(): boolean {
    return this.#state === "running" && !this.#isClaiming && this.#executions.size < this.#concurrency;
  }

  #claimOf(waitMs?: number): ClaimJobs {
    const max = Math.min(MAX_ITEMS, this.#concurrency - this.#executions.size);
    const claim = { worker_id: this.id, queues: this.#queues, max, lease_ms: this.leaseMs };
    return waitMs === undefined ? claim : { ...claim, wait_ms: waitMs };
  }

  async #claim(): Promise<void> {
    this.#isClaiming = true;
    const retry = { budget: false as const, deadlineMs: CLAIM_PATIENCE_MS };
    try {
      const { signal } = this.#noMoreClaims;
      const jobs = await this.client.jobs.claim(this.#claimOf(this.#waitMs), { signal, retry });
      await Promise.all(jobs.map((job) => this.#begin(job)));
    } catch (error) {
      if (!this.#noMoreClaims.signal.aborted) this.#claimFailed(error);
    }
    this.#isClaiming = false;
    this.#advance();
  }

  /** Without an answer the worker says so and goes on claiming. */
  #claimFailed(error: unknown): void {
    if (error instanceof NoAnswerError || (error instanceof ApiError && error.retryable)) this.#onError(error);
    else this.#fail(error);
  }

  /** The worker cannot go on, for example because its API key is revoked. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#state = "stopping";
    this.#noMoreClaims.abort();
  }

  /** Begins a job that was claimed. Resolves at once, unless the worker stops and gives it back. */
  async #begin(job: ClaimedJob): Promise<void> {
    if (this.#state !== "running") await this.#release(job);
    else void this.#execute(new Execution(this, job, this.#handlers.get(job.handler) ?? noHandler(job.handler)));
  }

  async #execute(execution: Execution): Promise<void> {
    this.#executions.add(execution);
    const report = await execution.run();
    this.#executions.delete(execution);
    if (report !== undefined) this.#results.push(report);
    this.#advance();
  }

  /** Reports all results that wait, and claims the next jobs in the same call unless a claim is waiting. */
  async #report(): Promise<void> {
    this.#isReporting = true;
    await Promise.resolve(); // jobs that end together are reported together
    const batch = this.#nextBatch();
    const claims = this.#canClaim();
    this.#isClaiming ||= claims;
    try {
      const items = batch.map((report) => report.item);
      const request = claims ? { items, claim: this.#claimOf() } : { items };
      const { results, jobs = [] } = await this.client.jobs.completeMany(request, {
        retry: this.patience,
        signal: this.#giveUp.signal,
      });
      batch.forEach((report, i) => {
        this.#settle(report, results[i]);
      });
      await Promise.all(jobs.map((job) => this.#begin(job)));
    } catch (error) {
      this.#refused(batch, error);
    }
    if (claims) this.#isClaiming = false;
    this.#isReporting = false;
    this.#advance();
  }

  /** As many results as a request can hold, at least one. */
  #nextBatch(): Report[] {
    const limit = this.#singles > 0 ? 1 : MAX_ITEMS;
    this.#singles = Math.max(0, this.#singles - 1);
    let bytes = 0;
    const end = this.#results.findIndex((report, i) => {
      bytes += report.bytes;
      return i > 0 && (bytes > MAX_BATCH_BYTES || i >= limit);
    });
    return this.#results.splice(0, end === -1 ? this.#results.length : end);
  }

  /** The server has answered for one result. */
  #settle(report: Report, result: JobsResult["results"][number] | undefined): void {
    if (result?.status !== "refused" || result.code === "LEASE_LOST" || result.code === "JOB_NOT_FOUND") {
      report.execution.end();
    } else if (result.retryable) {
      this.#results.push(report);
    } else {
      this.#failInstead(report, result);
    }
  }

  /** The server did not take the batch as a whole. */
  #refused(batch: Report[], error: unknown): void {
    const [only] = batch;
    if (!(error instanceof ApiError) || error.retryable || only === undefined) {
      this.#onError(error); // gave up after a long time: the leases have expired by now
      for (const { execution } of batch) execution.end();
    } else if (batch.length > 1) {
      this.#singles += batch.length; // one of them is too much: send them one by one
      this.#results.unshift(...batch);
    } else {
      this.#failInstead(only, error.problem);
    }
  }

  /** A result that the server does not accept fails the job: otherwise it would be done and refused again. */
  #failInstead({ execution, item }: Report, { code, detail }: { code: string; detail: string }): void {
    const { job } = execution;
    this.#onError(new PawlError(`The result of ${job.handler} was refused: ${code}: ${detail}`), job);
    if (item.error !== undefined) {
      execution.end();
      return;
    }
    this.#results.unshift(execution.failure({ code, message: detail, retryable: false }));
    if (this.#singles > 0) this.#singles += 1;
  }

  async #giveBackAfter(ms: number): Promise<void> {
    const timer = new AbortController();
    const expired = this.client.transport.clock.sleep(ms, timer.signal).catch(() => undefined);
    await Promise.race([this.#stopped, expired]);
    timer.abort();
    setTimeoutUnlessStopped(this.#stopped, () => {
      this.#giveUp.abort(); // there is no server to report to
    });
    await Promise.all(
      [...this.#executions].map(async (execution) => {
        execution.stop("stopping");
        this.#executions.delete(execution);
        await this.#release(execution.job);
      }),
    );
    this.#advance();
  }

  async #release(job: ClaimedJob): Promise<void> {
    try {
      await this.client.jobs.release(job, { retry: { budget: false, deadlineMs: GIVE_UP_MS } });
    } catch (error) {
      this.#onError(error, job); // others get it when the lease expires
    }
  }

  handlerFailed(error: unknown, job: ClaimedJob): void {
    this.#onError(error, job);
  }

  #stopOnSignals(): () => void {
    const node = nodeProcess();
    let stopping = false;
    const stop = (): void => {
      void this.stop(stopping ? { grace: 0 } : {});
      stopping = true;
    };
    for (const name of STOP_SIGNALS) node?.on(name, stop);
    return () => {
      for (const name of STOP_SIGNALS) node?.off(name, stop);
    };
  }
}

function setTimeoutUnlessStopped(stopped: Promise<void>, action: () => void): void {
  const timer = setTimeout(action, GIVE_UP_MS);
  void stopped.then(() => {
    clearTimeout(timer);
  });
}

/** The process, if this is Node or something like it. */
function nodeProcess(): NodeProcess | undefined {
  const { process: found } = globalThis as unknown as { process?: NodeProcess };
  return typeof (found as Partial<NodeProcess> | undefined)?.on === "function" ? found : undefined;
}

function noHandler(handler: string): Handler {
  return () => {
    throw new TaskError("NO_HANDLER", `This worker has no handler ${handler}`);
  };
}

/** A TaskError is one line: its handler chose to fail, so where it was thrown helps nobody. */
function complain(error: unknown, job?: ClaimedJob): void {
  const said = error instanceof TaskError ? `${error.code}: ${error.message}` : error;
  console.error(job === undefined ? "pawl worker:" : `pawl worker: ${job.handler} (job ${job.job_id}):`, said);
}
