/** One job in this worker: its handler, its heartbeats, and what becomes of it. */

import type { Client } from "../client.js";
import { LeaseLostError, NotFoundError } from "../errors.js";
import type { RetryOptions } from "../retry.js";
import type { ClaimedJob, CompleteJobs, JobError } from "../wire.js";
import { TaskContext } from "./context.js";
import { jobError, JobStoppedError, TaskError } from "./errors.js";
import { Journal } from "./journal.js";

/** Handles a job: its input, and the context. What it returns is the job's output. */
export type Handler = (input: never, context: TaskContext) => unknown;

/** What is reported for a job, and its size in bytes. */
export interface Report {
  readonly execution: Execution;
  readonly item: CompleteJobs["items"][number];
  readonly bytes: number;
}

/** What an execution needs from its worker. */
export interface ExecutionHost {
  readonly client: Client;
  readonly leaseMs: number;
  /** For calls that must get through, such as results and checkpoints. */
  readonly patience: RetryOptions;
  /** The handler threw this. */
  handlerFailed(error: unknown, job: ClaimedJob): void;
}

export class Execution {
  readonly context: TaskContext;
  readonly #stop = new AbortController();
  readonly #heartbeats = new AbortController();
  readonly #claimedAt: number;
  #isOver = false;
  #left: (item: undefined) => void = () => undefined;

  constructor(
    readonly host: ExecutionHost,
    readonly job: ClaimedJob,
    readonly handler: Handler,
  ) {
    const { client, patience } = host;
    this.#claimedAt = client.transport.clock.now();
    const journal = new Journal({
      job,
      jobs: client.jobs,
      clock: client.transport.clock,
      signal: this.#stop.signal,
      call: { retry: patience },
      isOver: () => this.#isOver,
      lost: () => {
        this.stop("lease_lost");
      },
      leave: () => {
        this.#left(undefined);
      },
    });
    this.context = new TaskContext(client, job, this.#stop.signal, journal, () => this.#serverTime());
  }

  /** Whether the result counts for nothing: the job is cancelled, another worker's, or given back. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The time by the server's clock, whatever this machine's clock says: the lease began when it was claimed. */
  #serverTime(): number {
    const claimed = Date.parse(this.job.lease_expires_at) - this.host.leaseMs;
    return claimed + this.host.client.transport.clock.now() - this.#claimedAt;
  }

  /** Asks the handler to stop. What it returns afterwards counts for nothing. */
  stop(why: JobStoppedError["why"]): void {
    this.#stop.abort(new JobStoppedError(why));
    this.#heartbeats.abort();
  }

  /** Runs the handler. What is to be reported, or undefined: the job is suspended, cancelled or another worker's. */
  async run(): Promise<Report | undefined> {
    const left = new Promise<undefined>((resolve) => {
      this.#left = resolve;
    });
    void this.#beat();
    const report = await Promise.race([this.#handle(), left]);
    if (report !== undefined && !this.isStopped) return report;
    this.end();
    return undefined;
  }

  /** The result is reported, or never will be: no more heartbeats. */
  end(): void {
    this.#heartbeats.abort();
  }

  async #handle(): Promise<Report> {
    try {
      const output = (await this.handler(this.job.input as never, this.context)) ?? null;
      this.#isOver = true;
      return this.#success(output);
    } catch (error) {
      this.#isOver = true;
      if (!this.isStopped) this.host.handlerFailed(error, this.job);
      return this.failure(jobError(error));
    }
  }

  #success(output: unknown): Report {
    const { state } = this.context;
    try {
      return this.#sized(state === undefined ? { output } : { output, state });
    } catch (cause) {
      throw new TaskError("OUTPUT_INVALID", `The output is not JSON: ${String(cause)}`, { retryable: false, cause });
    }
  }

  /** The report that the job has failed. */
  failure(error: JobError): Report {
    return this.#sized({ error });
  }

  #sized(result: Omit<Report["item"], "job_id" | "lease_token">): Report {
    const item = { job_id: this.job.job_id, lease_token: this.job.lease_token, ...result };
    return { execution: this, item, bytes: new TextEncoder().encode(JSON.stringify(item)).length };
  }

  /** Heartbeats go on while a result waits to be reported. */
  async #beat(): Promise<void> {
    const { signal } = this.#heartbeats;
    const { clock } = this.host.client.transport;
    const regular = this.host.leaseMs / 3;
    const pause = (ms: number): Promise<boolean> =>
      clock.sleep(ms, signal).then(
        () => true,
        () => false,
      );
    let next = regular;
    while (await pause(next)) next = (await this.#heartbeat(signal)) ? regular : Math.min(1000, this.host.leaseMs / 10);
  }

  /** False if there was no answer: the lease may still hold, so it is tried again soon. */
  async #heartbeat(outer: AbortSignal): Promise<boolean> {
    const { progress } = this.context;
    const retry = { budget: false as const, maxAttempts: 1 };
    const limit = AbortSignal.timeout(Math.ceil(Math.max(1000, this.host.leaseMs / 3)));
    try {
      const signal = AbortSignal.any([outer, limit]);
      const options = { signal, retry, ...(progress === undefined ? {} : { progress }) };
      const { cancel_requested } = await this.host.client.jobs.heartbeat(this.job, options);
      if (cancel_requested) this.stop("cancelled");
      return true;
    } catch (error) {
      if (error instanceof LeaseLostError || error instanceof NotFoundError) this.stop("lease_lost");
      return false;
    }
  }
}
