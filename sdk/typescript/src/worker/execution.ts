/** One job in this worker: its handler, its heartbeats, and what becomes of it. */

import type { Client } from "../client.js";
import { LeaseLostError, NotFoundError } from "../errors.js";
import type { DurableJob } from "../resources/index.js";
import type { RetryOptions } from "../retry.js";
import type { CompleteJobs, JobError } from "../wire.js";
import { TaskContext } from "./context.js";
import { jobError, JobStoppedError, TaskError } from "./errors.js";
import { Journal } from "./journal.js";

/** Handles a job: its input, and the context. What it returns is the job's output. */
export type Handler = (input: never, context: TaskContext) => unknown;

/** What is reported for a job, and its size in bytes. */
export interface Report {
  readonly job: DurableJob;
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
  handlerFailed(error: unknown, job: DurableJob): void;
}

export class Execution {
  readonly context: TaskContext;
  readonly #stop = new AbortController();
  readonly #heartbeats = new AbortController();
  #left: (item: undefined) => void = () => undefined;

  constructor(
    readonly host: ExecutionHost,
    readonly job: DurableJob,
    readonly handler: Handler,
  ) {
    const { client, patience } = host;
    const journal = new Journal({
      job,
      jobs: client.jobs,
      clock: client.transport.clock,
      signal: this.#stop.signal,
      call: { retry: patience },
      lost: () => {
        this.stop("lease_lost");
        this.#left(undefined);
      },
      suspended: () => {
        this.#left(undefined);
      },
    });
    this.context = new TaskContext(client, job, this.#stop.signal, journal);
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
    const beating = this.#beat();
    const report = await Promise.race([this.#handle(), left]);
    this.#heartbeats.abort();
    await beating;
    return this.#stop.signal.aborted ? undefined : report;
  }

  async #handle(): Promise<Report> {
    try {
      const output = (await this.handler(this.job.input as never, this.context)) ?? null;
      return successOf(this.job, output, this.context.state);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.host.handlerFailed(error, this.job);
      return failureOf(this.job, jobError(error));
    }
  }

  async #beat(): Promise<void> {
    const { signal } = this.#heartbeats;
    const { clock } = this.host.client.transport;
    const pause = (): Promise<boolean> =>
      clock.sleep(this.host.leaseMs / 3, signal).then(
        () => true,
        () => false,
      );
    while (await pause()) await this.#heartbeat(signal);
  }

  async #heartbeat(signal: AbortSignal): Promise<void> {
    const { leaseMs, client } = this.host;
    const { progress } = this.context;
    const retry = { budget: false as const, deadlineMs: leaseMs };
    try {
      const options = { signal, retry, ...(progress === undefined ? {} : { progress }) };
      if ((await client.jobs.heartbeat(this.job, options)).cancel_requested) this.stop("cancelled");
    } catch (error) {
      // No answer is no news: the lease may still hold. The server decides when the result arrives.
      if (error instanceof LeaseLostError || error instanceof NotFoundError) this.stop("lease_lost");
    }
  }
}

function successOf(job: DurableJob, output: unknown, state: Record<string, unknown> | undefined): Report {
  const { job_id, lease_token } = job;
  try {
    return sized(job, { job_id, lease_token, output, ...(state === undefined ? {} : { state }) });
  } catch (error) {
    throw new TaskError("OUTPUT_INVALID", `The output is not JSON: ${String(error)}`, {
      retryable: false,
      cause: error,
    });
  }
}

/** The report that a job has failed. */
export function failureOf(job: DurableJob, error: JobError): Report {
  return sized(job, { job_id: job.job_id, lease_token: job.lease_token, error });
}

function sized(job: DurableJob, item: Report["item"]): Report {
  return { job, item, bytes: new TextEncoder().encode(JSON.stringify(item)).length };
}
