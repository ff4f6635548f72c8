/**
 * What a durable function has done so far: results by name, stored on the job under its lease. A function that is run
 * again finds them and goes on behind them. While it waits, nothing is held: the job is suspended.
 */

import { ApiError, NoAnswerError } from "../errors.js";
import type { RetryPolicy } from "../definition.js";
import type { Jobs, Suspension, WorkerCallOptions } from "../resources/index.js";
import { Backoff, type Clock, type RetryOptions } from "../retry.js";
import type { ClaimedJob, JobError, ResumedBy } from "../wire.js";
import { jobError, StepError } from "./errors.js";

/** A promise that never settles: the function goes no further here, and no `catch` or `finally` of it runs. */
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** What a journal needs from the worker. */
export interface JournalHost {
  readonly job: ClaimedJob;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly call: WorkerCallOptions;
  /** Whether the function has returned or thrown. */
  isOver(): boolean;
  /** The job is another worker's. */
  lost(): void;
  /** The function goes no further here: the job is suspended, or has to stop. */
  leave(): void;
}

export class Journal {
  readonly #host: JournalHost;
  readonly #used = new Map<string, number>();
  readonly #running = new Set<Promise<unknown>>();
  #waiting: string | undefined;

  constructor(host: JournalHost) {
    this.#host = host;
  }

  /** The name of this use: a name that is used again, as in a loop, gets a number. */
  unique(name: string): string {
    const uses = (this.#used.get(name) ?? 0) + 1;
    this.#used.set(name, uses);
    return uses === 1 ? name : `${name}#${uses}`;
  }

  /** The stored result of a name, or what `run` makes of it, which is then stored. What is thrown is final. */
  async step<T>(name: string, run: () => T | Promise<T>, retry: RetryPolicy): Promise<T> {
    const known = this.#known(name);
    if (known !== undefined) return valueOf<T>(name, known);
    const running = this.#runStep<T>(name, run, retry);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #runStep<T>(name: string, run: () => T | Promise<T>, retry: RetryPolicy): Promise<T> {
    const result = await this.#attempts(run, retry);
    return result === undefined ? this.#abandon<T>() : this.#store<T>(name, result);
  }

  /** Waits for something: suspends the job, and takes the outcome when it is resumed. */
  async wait<T>(name: string, suspension: () => Suspension, take: (by: ResumedBy) => Result): Promise<T> {
    const known = this.#known(name);
    if (known !== undefined) return valueOf<T>(name, known);
    if (this.#isStopped()) return this.#abandon();
    const by = this.#host.job.resumed_by;
    if (by?.name === name) return this.#store<T>(name, take(by));
    return this.#suspend(name, suspension);
  }

  /** Looks at something now and then: `look` gives its outcome, or when to look again. */
  async poll<T>(name: string, look: () => Promise<Result | Date>): Promise<T> {
    const known = this.#known(name);
    if (known !== undefined) return valueOf<T>(name, known);
    if (this.#isStopped()) return this.#abandon();
    const seen = await look();
    if (!(seen instanceof Date)) return this.#store<T>(name, seen);
    return this.#suspend(name, () => ({ until: seen.toISOString() }));
  }

  /** Suspends the job, as soon as no step is running. */
  async #suspend<T>(name: string, suspension: () => Suspension): Promise<T> {
    if (this.#waiting !== undefined) {
      throw new TypeError(
        `"${name}" cannot wait: a function waits for one thing at a time, and "${this.#waiting}" waits`,
      );
    }
    this.#waiting = name;
    // Steps that run beside the wait are stored first: afterwards the lease is gone.
    do {
      await Promise.allSettled(this.#running);
      await new Promise((resolve) => setTimeout(resolve, 0)); // the function may go on behind a step
    } while (this.#running.size > 0);
    if (this.#host.isOver()) return never<T>(); // the function has ended without waiting for this
    const { jobs, job, call } = this.#host;
    return this.#fenced(async () => {
      await jobs.suspend(job, { name, ...suspension() }, call);
      return this.#abandon<T>();
    });
  }

  #known(name: string): Result | undefined {
    const { checkpoints = {}, checkpoint_errors = {} } = this.#host.job;
    const error = Object.hasOwn(checkpoint_errors, name) ? checkpoint_errors[name] : undefined;
    if (error !== undefined) return { error };
    return Object.hasOwn(checkpoints, name) ? { output: checkpoints[name] } : undefined;
  }

  /** Stores a result; if the name has one already, that one counts. */
  #store<T>(name: string, result: Result): Promise<T> {
    const { jobs, job, call } = this.#host;
    return this.#fenced(async () => {
      const stored = await jobs.checkpoint(job, name, wireResult(result), call);
      const first: Result = stored.error === undefined ? { output: stored.output } : { error: stored.error };
      return valueOf<T>(name, first, "cause" in result ? result.cause : undefined);
    });
  }

  /** What becomes of a step; undefined if the job has to stop. */
  async #attempts(run: () => unknown, policy: RetryPolicy): Promise<Result | undefined> {
    const { clock, signal } = this.#host;
    const backoff = new Backoff(backoffOptions(policy), () => clock.random());
    while (!signal.aborted) {
      try {
        return { output: await run() };
      } catch (cause) {
        const error = jobError(cause);
        backoff.fail();
        const isStopped = this.#isStopped();
        if (!isStopped && isFinal(error, backoff.failures, policy))
          return { error: { ...error, retryable: false }, cause };
        await clock.sleep(isStopped ? 0 : backoff.pauseMs(), signal).catch(() => undefined);
      }
    }
    return undefined;
  }

  #isStopped(): boolean {
    return this.#host.signal.aborted;
  }

  /** The job has to stop. The function goes no further, so that it does not take this for a failure and undo things. */
  #abandon<T>(): Promise<T> {
    this.#host.leave();
    return never<T>();
  }

  /** A lost lease, or no answer for so long that it must be lost, is no error of the function: it stops where it is. */
  async #fenced<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      const isLost = ApiError.is(error, "LEASE_LOST", "JOB_NOT_FOUND") || error instanceof NoAnswerError;
      if (!isLost && !(error instanceof ApiError && error.retryable)) throw error;
      this.#host.lost();
      return this.#abandon<T>();
    }
  }
}

/** An outcome: what a step returned, or its final error. */
export type Result = { output: unknown } | { error: JobError; cause?: unknown };

function wireResult(result: Result): { output: unknown } | { error: JobError } {
  return "error" in result ? { error: result.error } : { output: result.output ?? null };
}

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows what was stored
function valueOf<T>(name: string, result: Result, cause?: unknown): T {
  if ("error" in result) throw new StepError(name, result.error, cause);
  return result.output as T;
}

function isFinal(error: JobError, attempt: number, { max_attempts = 3, non_retryable = [] }: RetryPolicy): boolean {
  return error.retryable === false || attempt >= max_attempts || non_retryable.includes(error.code);
}

/** The policy of a definition, for the worker's own retries. */
function backoffOptions({
  jitter = "full",
  backoff_ms = 1000,
  multiplier = 2,
  max_backoff_ms = 300_000,
}: RetryPolicy): RetryOptions {
  return { jitter, baseMs: backoff_ms, multiplier, maxMs: max_backoff_ms };
}
