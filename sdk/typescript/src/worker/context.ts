/** What a handler gets beside its input. */

import type { Client } from "../client.js";
import { retryPolicy, type ApprovalOptions, type RetryPolicy, type Workflow } from "../definition.js";
import { toMs, type Duration } from "../duration.js";
import { isOver } from "../run.js";
import type { Suspension } from "../resources/index.js";
import type { ClaimedJob, ResumedBy, Run } from "../wire.js";
import type { Journal, Result } from "./journal.js";

/** What a step's function gets. */
export interface StepContext {
  /** The idempotency key of the step's side effect: the job's id and the step's name. */
  readonly key: string;
  /** Aborted when the job should stop. */
  readonly signal: AbortSignal;
}

/** Options of a step of a durable function. */
export interface DurableStepOptions {
  /** How often the worker tries the step; default: three times. As in a definition: a policy, or the number of attempts. */
  retry?: RetryPolicy | number;
}

/** What a person approved. */
export interface ApprovedContent<T> {
  /** The content as approved, with the person's changes. */
  content: T;
  by: string | null;
  reason: string | null;
}

/** How long a child run is waited for in one request, and how often it is looked at afterwards. */
const CHILD_WAIT_MS = 2000;
const CHILD_POLL_MS = { min: 1000, max: 60_000 };

/**
 * The job at hand. Every handler may be durable: it keeps results with {@link TaskContext.step}, and waits without
 * holding anything. If the worker dies or the function is resumed, the handler is called again from the top, and what it
 * has done is found by name: finished steps are not run again.
 */
export class TaskContext {
  /** The job as it was claimed. */
  readonly job: ClaimedJob;
  /** Aborted when the run is cancelled, the lease is lost or the worker stops: pass it to `fetch` and the like. */
  readonly signal: AbortSignal;
  readonly #client: Client;
  readonly #journal: Journal;
  readonly #now: () => number;
  #progress: unknown;
  #state: Record<string, unknown> | undefined;

  /** Workers make it. */
  constructor(client: Client, job: ClaimedJob, signal: AbortSignal, journal: Journal, now: () => number) {
    this.#client = client;
    this.#now = now;
    this.#journal = journal;
    this.job = job;
    this.signal = signal;
  }

  /**
   * The idempotency key of the job's side effects: the same in every attempt, and no other job has it.
   *
   * @example
   * ```ts
   * worker.task("mail.send", (input: { to: string }, ctx) => {
   *   console.log("send to", input.to, "with Idempotency-Key", ctx.key, "attempt", ctx.attempt);
   * });
   * ```
   */
  get key(): string {
    return this.job.job_id;
  }

  /** The number of this attempt, from 1. */
  get attempt(): number {
    return this.job.attempt;
  }

  /** What the handler reported last with {@link TaskContext.setProgress}. */
  get progress(): unknown {
    return this.#progress;
  }

  /** The run's new state, if {@link TaskContext.setState} was called. */
  get state(): Record<string, unknown> | undefined {
    return this.#state;
  }

  /**
   * Shows progress with the job, from the next heartbeat on.
   *
   * @example
   * ```ts
   * worker.task("video.encode", async (_input, ctx) => {
   *   for (const percent of [0, 50, 100]) {
   *     ctx.setProgress({ percent });
   *     await new Promise((resolve) => setTimeout(resolve, 1));
   *   }
   * });
   * ```
   */
  setProgress(progress: unknown): void {
    this.#progress = progress;
  }

  /**
   * Replaces the run's `state` when the handler returns.
   *
   * @example
   * ```ts
   * worker.task("cart.price", (input: { lines: number[] }, ctx) => {
   *   ctx.setState({ total: input.lines.reduce((sum, price) => sum + price, 0) });
   * });
   * ```
   */
  setState(state: Record<string, unknown>): void {
    this.#state = state;
  }

  /**
   * Does something once. Its result is stored under the name; when the function is run again, the stored result is
   * returned and `run` is not called. A failure is retried as `retry` says, then stored and thrown as a `StepError`.
   * Use the key for side effects: `run` may be called twice if the worker dies before the result is stored.
   *
   * @example
   * ```ts
   * worker.task("orders.pay", async (input: { card: string }, ctx) => {
   *   const charge = await ctx.step("charge", ({ key }) => ({ id: `ch-${key}`, card: input.card }), {
   *     retry: { max_attempts: 5, backoff_ms: 200 },
   *   });
   *   return charge.id;
   * });
   * ```
   */
  step<T>(name: string, run: (step: StepContext) => T | Promise<T>, options: DurableStepOptions = {}): Promise<T> {
    const unique = this.#journal.unique(name);
    const step = { key: `${this.key}:${unique}`, signal: this.signal };
    return this.#journal.step(unique, () => run(step), retryPolicy(options.retry ?? {}));
  }

  /**
   * Suspends the function for a while, or until a time. It holds no worker meanwhile.
   *
   * @example
   * ```ts
   * worker.task("trial.remind", async (_input, ctx) => {
   *   await ctx.sleep("trial", "14d");
   *   await ctx.step("mail", () => console.log("The trial ends tomorrow"));
   * });
   * ```
   */
  async sleep(name: string, until: Duration | Date): Promise<void> {
    const suspension = (): Suspension => ({ until: this.#until(until) });
    await this.#journal.wait(this.#journal.unique(name), suspension, () => ({ output: null }));
  }

  /**
   * Suspends the function until the run gets a signal, and returns its payload. A signal that came early counts. After
   * `timeout` it is a `StepError` with the code `TIMED_OUT`.
   *
   * @example
   * ```ts
   * worker.task("orders.await-payment", async (_input, ctx) => {
   *   const { amount } = await ctx.waitSignal<{ amount: number }>("paid", { timeout: "3d" });
   *   return amount;
   * });
   * ```
   */
  async waitSignal<T = unknown>(signal: string, options: { timeout?: Duration | Date } = {}): Promise<T> {
    const { timeout } = options;
    const suspension = (): Suspension => (timeout === undefined ? { signal } : { signal, until: this.#until(timeout) });
    const name = this.#journal.unique(`signal:${signal}`);
    const got = await this.#journal.wait<{ payload: T }>(name, suspension, (by) => signalResult(signal, by));
    return got.payload;
  }

  /**
   * Asks a person, and suspends the function until they have decided. Returns what they approved. A rejection is a
   * `StepError` with the code `APPROVAL_REJECTED`, no decision in time one with `APPROVAL_EXPIRED`.
   *
   * @example
   * ```ts
   * worker.task("refunds.pay", async (input: { amount: number }, ctx) => {
   *   const { content } = await ctx.approval("ok", `Refund ${input.amount}?`, {
   *     content: { amount: input.amount },
   *     approvers: { count: 1, forbid_requester: true },
   *   });
   *   return ctx.step("pay", () => ({ paid: content.amount }));
   * });
   * ```
   */
  async approval<T = unknown>(
    name: string,
    prompt: string,
    options: Omit<ApprovalOptions, "content" | "on_expire"> & { content?: T } = {},
  ): Promise<ApprovedContent<T>> {
    const approval = { prompt, ...options };
    return this.#journal.wait(this.#journal.unique(name), () => ({ approval }), approvalResult);
  }

  /**
   * Starts a run of another workflow, once, and waits for its output without holding a worker for long. A run that does
   * not succeed is a `StepError` with the code `CHILD_FAILED`. The worker's API key must be allowed to start runs.
   *
   * @example
   * ```ts
   * worker.task("orders.invoice", async (input: { id: string }, ctx) => {
   *   return ctx.runWorkflow<{ name: string }, { text: string }>("greet", { name: input.id });
   * });
   * ```
   */
  async runWorkflow<Input = unknown, Output = unknown>(
    workflow: Workflow<Input, Output> | string,
    input?: NoInfer<Input>,
    options: { name?: string } = {},
  ): Promise<Output> {
    const id = typeof workflow === "string" ? workflow : workflow.id;
    const name = this.#journal.unique(options.name ?? id);
    const client = this.#client.withTenant(this.job.tenant); // the worker may serve all tenants
    return this.#journal.poll<Output>(name, async () => {
      const handle = await client.start(id, input, { key: `${this.key}:${name}`, wait: CHILD_WAIT_MS });
      const run = handle.started?.run ?? (await handle.get());
      return isOver(run.status) ? childResult(run) : new Date(this.#now() + this.#pollAfter(run));
    });
  }

  /** A time of the server's clock. */
  #until(until: Duration | Date): string {
    return (until instanceof Date ? until : new Date(this.#now() + toMs(until))).toISOString();
  }

  /** A child that has run for long is looked at less often. */
  #pollAfter(run: Run): number {
    const age = this.#now() - Date.parse(run.created_at);
    return Math.min(CHILD_POLL_MS.max, Math.max(CHILD_POLL_MS.min, age / 4));
  }
}

function childResult(run: Run): Result {
  if (run.status === "succeeded") return { output: run.output };
  const message = `Run ${run.id} of ${run.workflow_id} ended as ${run.status}`;
  const details = { run_id: run.id, status: run.status, error: run.error };
  return { error: { code: "CHILD_FAILED", message, retryable: false, details } };
}

function signalResult(signal: string, by: ResumedBy): Result {
  if (by.kind === "signal") return { output: { payload: by.payload, sent_at: by.sent_at } };
  return { error: { code: "TIMED_OUT", message: `No signal ${signal} in time`, retryable: false } };
}

function approvalResult(resumed: ResumedBy): Result {
  const { decision, by, reason, content } = resumed.kind === "approval" ? resumed : NOBODY;
  if (decision === "approved") return { output: { by, reason, content } };
  const code = decision === "rejected" ? "APPROVAL_REJECTED" : "APPROVAL_EXPIRED";
  return { error: { code, message: reason ?? "", retryable: false, details: { by } } };
}

const NOBODY = { decision: "expired", by: null, reason: null, content: null };
