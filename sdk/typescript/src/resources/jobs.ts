/** Jobs, as workers see them. {@link Worker} does all of this by itself. */

import type {
  Checkpoint,
  ClaimedJob,
  ClaimedJobs,
  ClaimJobs,
  CompleteJobs,
  Job,
  JobError,
  JobResult,
  JobsResult,
  Lease,
  Queue,
  Suspended,
  SuspendJob,
  WorkerInfo,
} from "../wire.js";
import type { RetryOptions } from "../retry.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

/** What a suspended job waits for. */
export type Suspension = Omit<SuspendJob, "lease_token">;

/** Options of a worker's call: it has no key, because the lease makes it safe to repeat. */
export interface WorkerCallOptions extends RequestOptions {
  retry?: RetryOptions;
}

/** A job that was claimed, by its id and its lease. */
export type Claimed = Pick<ClaimedJob, "job_id" | "lease_token">;

const jobPath = (id: string): string => `/api/v1/jobs/${segment(id)}`;

/** The routes of jobs, queues and workers: `client.jobs`. */
export class Jobs extends Resource {
  /**
   * Claims jobs, each under a lease. Waits up to `wait_ms` for the first.
   *
   * @example
   * ```ts
   * const jobs = await client.jobs.claim({ worker_id: "me", queues: ["empty"], max: 5 });
   * console.log(jobs.length); // 0
   * ```
   */
  async claim(claim: ClaimJobs, options: WorkerCallOptions = {}): Promise<ClaimedJob[]> {
    const more = { waitMs: claim.wait_ms ?? 0 };
    return (await this.#post<ClaimedJobs>("/api/v1/jobs/claim", claim, options, more)).jobs;
  }

  /**
   * Claims one job that was offered on the bus.
   *
   * @example
   * ```ts
   * const run = await client.start("by-hand", { to: "ada" });
   * const [step] = (await run.get()).steps;
   * const job = await client.jobs.claimOne(step?.job_id ?? "", { worker_id: "me" });
   * await client.jobs.complete(job, { sent: true });
   * ```
   */
  claimOne(
    jobId: string,
    claim: { worker_id: string; lease_ms?: number },
    options: WorkerCallOptions = {},
  ): Promise<ClaimedJob> {
    return this.#post(`${jobPath(jobId)}/claim`, claim, options);
  }

  /**
   * Completes a job with its output, and optionally replaces the run's state.
   *
   * @example
   * ```ts
   * await client.start("by-hand", { to: "ada" });
   * const [job] = await client.jobs.claim({ worker_id: "me", queues: ["by-hand"], wait_ms: 5000 });
   * if (job) console.log((await client.jobs.complete(job, { sent: true })).status); // completed
   * ```
   */
  complete(
    job: Claimed,
    output: unknown = null,
    { state, ...options }: WorkerCallOptions & { state?: Record<string, unknown> } = {},
  ): Promise<JobResult> {
    return this.#post(`${jobPath(job.job_id)}/complete`, { lease_token: job.lease_token, output, state }, options);
  }

  /**
   * Reports that an attempt failed.
   *
   * @example
   * ```ts
   * await client.start("by-hand", { to: "nobody" });
   * const [job] = await client.jobs.claim({ worker_id: "me", queues: ["by-hand"], wait_ms: 5000 });
   * if (job) await client.jobs.fail(job, { code: "NO_ADDRESS", message: "nobody", retryable: false });
   * ```
   */
  fail(job: Claimed, error: JobError, options: WorkerCallOptions = {}): Promise<JobResult> {
    return this.#post(`${jobPath(job.job_id)}/fail`, { lease_token: job.lease_token, error }, options);
  }

  /**
   * Renews the lease. `cancel_requested` says that the run was cancelled: stop.
   *
   * @example
   * ```ts
   * await client.start("by-hand", { to: "ada" });
   * const [job] = await client.jobs.claim({ worker_id: "me", queues: ["by-hand"], wait_ms: 5000 });
   * if (job) {
   *   console.log((await client.jobs.heartbeat(job, { progress: { percent: 50 } })).cancel_requested); // false
   *   await client.jobs.complete(job);
   * }
   * ```
   */
  heartbeat(job: Claimed, { progress, ...options }: WorkerCallOptions & { progress?: unknown } = {}): Promise<Lease> {
    return this.#post(`${jobPath(job.job_id)}/heartbeat`, { lease_token: job.lease_token, progress }, options);
  }

  /**
   * Gives a job back for other workers. Uses up no attempt.
   *
   * @example
   * ```ts
   * await client.start("by-hand", { to: "ada" });
   * const [job] = await client.jobs.claim({ worker_id: "me", queues: ["by-hand"], wait_ms: 5000 });
   * if (job) console.log((await client.jobs.release(job)).status); // released
   * ```
   */
  release(job: Claimed, options: WorkerCallOptions = {}): Promise<JobResult> {
    return this.#post(`${jobPath(job.job_id)}/release`, { lease_token: job.lease_token }, options);
  }

  /**
   * Reports up to 100 results in one commit, and may claim the next jobs in the same call.
   *
   * @example
   * ```ts
   * await client.start("by-hand", { to: "ada" });
   * const jobs = await client.jobs.claim({ worker_id: "me", queues: ["by-hand"], max: 10, wait_ms: 5000 });
   * const items = jobs.map(({ job_id, lease_token }) => ({ job_id, lease_token, output: { sent: true } }));
   * const { results } = await client.jobs.completeMany({ items, claim: { worker_id: "me", queues: ["by-hand"] } });
   * console.log(results[0]?.status); // completed
   * ```
   */
  completeMany(batch: CompleteJobs, options: WorkerCallOptions = {}): Promise<JobsResult> {
    return this.#post("/api/v1/jobs:complete", batch, options);
  }

  /** Stores a step of a durable function, under the lease. {@link TaskContext.step} does it for you. */
  checkpoint(
    job: Claimed,
    name: string,
    result: { output: unknown } | { error: JobError },
    options: WorkerCallOptions = {},
  ): Promise<Checkpoint> {
    return this.#post(`${jobPath(job.job_id)}/checkpoints`, { lease_token: job.lease_token, name, ...result }, options);
  }

  /** Suspends a durable function: gives up the lease until a time, a signal or a decision. */
  suspend(job: Claimed, suspension: Suspension, options: WorkerCallOptions = {}): Promise<Suspended> {
    return this.#post(`${jobPath(job.job_id)}/suspend`, { lease_token: job.lease_token, ...suspension }, options);
  }

  /**
   * A job with the outcome of each attempt.
   *
   * @example
   * ```ts
   * const run = await client.start("by-hand", { to: "ada" });
   * const [step] = (await run.get()).steps;
   * console.log((await client.jobs.get(step?.job_id ?? "")).queue); // by-hand
   * ```
   */
  get(jobId: string, options: RequestOptions = {}): Promise<Job> {
    return this.read(jobPath(jobId), {}, options);
  }

  /**
   * The queues with their jobs and workers.
   *
   * @example
   * ```ts
   * for await (const { queue, ready, workers } of client.jobs.queues()) console.log(queue, ready, workers);
   * ```
   */
  queues(options: ListOptions = {}): Pages<Queue> {
    return this.pages("/api/v1/queues", options);
  }

  /**
   * The workers that poll queues or hold jobs.
   *
   * @example
   * ```ts
   * for await (const { worker_id, running } of client.jobs.workers()) console.log(worker_id, running);
   * ```
   */
  workers(options: ListOptions = {}): Pages<WorkerInfo> {
    return this.pages("/api/v1/workers", options);
  }

  /**
   * Jobs that failed permanently, newest first.
   *
   * @example
   * ```ts
   * for await (const job of client.jobs.deadLetters()) console.log(job.job_id, job.error);
   * ```
   */
  deadLetters(options: ListOptions = {}): Pages<Job> {
    return this.pages("/api/v1/dead-letters", options);
  }

  /**
   * Retries a dead letter's run, or the call of its entity.
   *
   * @example
   * ```ts
   * await client.execute("order", { amount: -1 }).catch(() => undefined); // fails, and leaves a dead letter
   * const [letter] = (await client.jobs.deadLetters().page()).items;
   * if (letter) await client.jobs.retryDeadLetter(letter.job_id);
   * ```
   */
  retryDeadLetter(jobId: string, options: ChangeOptions = {}): Promise<Job> {
    return this.change("POST", `/api/v1/dead-letters/${segment(jobId)}/retry`, {}, options);
  }

  /**
   * Removes a job from the list of dead letters. Changes nothing else.
   *
   * @example
   * ```ts
   * await client.execute("order", { amount: -2 }).catch(() => undefined);
   * const [letter] = (await client.jobs.deadLetters().page()).items;
   * if (letter) await client.jobs.dropDeadLetter(letter.job_id);
   * ```
   */
  dropDeadLetter(jobId: string, options: ChangeOptions = {}): Promise<Job> {
    return this.change("DELETE", `/api/v1/dead-letters/${segment(jobId)}`, undefined, options);
  }

  async #post<T>(path: string, body: object, options: WorkerCallOptions, more = {}): Promise<T> {
    const { signal, retry = {} } = options;
    return (await this.transport.send<T>({ method: "POST", path, body, signal, retry, ...more })).body;
  }
}
