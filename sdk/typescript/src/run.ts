/** One run: wait for it, watch it, control it. */

import { toMs, type Duration } from "./duration.js";
import { RunFailedError, WaitTimeoutError } from "./errors.js";
import { Resource, segment, split, type ListOptions, type Pages, type SignalOptions } from "./resources/index.js";
import { follow } from "./stream.js";
import type { RequestOptions, RunChangeOptions, Transport } from "./transport.js";
import type { Run, RunEvent, RunStatus, SignalResult, StartedRun, Why } from "./wire.js";

const OVER = new Set<RunStatus>(["succeeded", "failed", "denied", "cancelled", "timed_out"]);

/** Whether a run with this status has ended. */
export const isOver = (status: RunStatus): boolean => OVER.has(status);

/** Options of a wait. */
export interface WaitOptions extends RequestOptions {
  /** How long to wait at most; default: as long as it takes. */
  timeout?: Duration;
}

/** Options of a watch. */
export interface WatchOptions extends RequestOptions {
  /** Begins after the event with this number; default: with the first. */
  after?: number;
}

/**
 * A run, by its id. `client.start` returns one; `client.run(id)` makes one for a run that exists.
 *
 * @example
 * ```ts
 * const run = await client.start("greet", { name: "Ada" });
 * console.log(run.id, run.created);
 * const ended = await client.run(run.id).wait();
 * console.log(ended.status); // succeeded
 * ```
 */
export class RunHandle<Output = unknown> extends Resource {
  /** The answer to the start; undefined for `client.run(id)`. */
  readonly started: StartedRun | undefined;

  /** Clients make it: `client.start` and `client.run`. */
  constructor(
    transport: Transport,
    readonly id: string,
    started?: StartedRun,
  ) {
    super(transport);
    this.started = started;
  }

  /** Whether this start made the run: false if its key was used before, or it joined an active run. */
  get created(): boolean {
    return this.started?.created ?? false;
  }

  /**
   * The run as it is now.
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * console.log((await run.get()).status); // waiting
   * ```
   */
  get(options: RequestOptions = {}): Promise<Run> {
    return this.read(this.#path(), {}, options);
  }

  /**
   * Waits for the end of the run, whatever it is, and returns the run. Survives restarts of the server.
   *
   * @example
   * ```ts
   * const run = await client.start("greet", { name: "Ada" });
   * console.log((await run.wait({ timeout: "30s" })).output); // { text: 'Hello, Ada!' }
   * ```
   */
  async wait(options: WaitOptions = {}): Promise<Run> {
    const limited = deadline(options);
    try {
      let run = await this.get(limited);
      while (!isOver(run.status)) {
        await drain(this.watch({ ...limited, after: run.version }));
        run = await this.get(limited);
      }
      return run;
    } catch (error) {
      if (limited.signal?.reason === error && options.signal?.aborted !== true) throw timedOut(this.id, error);
      throw error;
    }
  }

  /**
   * Waits for the output of the run. A run that does not succeed is a {@link RunFailedError}.
   *
   * @example
   * ```ts
   * const run = await client.start<{ name: string }, { text: string }>("greet", { name: "Ada" });
   * console.log((await run.result()).text); // Hello, Ada!
   * ```
   */
  async result(options: WaitOptions = {}): Promise<Output> {
    const run = await this.wait(options);
    if (run.status !== "succeeded") throw new RunFailedError(run);
    return run.output as Output;
  }

  /**
   * The events of the run as they happen, until it ends. A broken connection is resumed: no event is missed or repeated.
   *
   * @example
   * ```ts
   * const run = await client.start("greet", { name: "Ada" });
   * for await (const event of run.watch()) console.log(event.seq, event.type);
   * ```
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<RunEvent, void> {
    const { signal, after } = options;
    // A stream that ends may also mean that the server stops, so the run itself is asked.
    const isComplete = async (): Promise<boolean> =>
      isOver((await this.get(signal === undefined ? {} : { signal })).status);
    const lastId = after === undefined ? null : String(after);
    for await (const message of follow(this.transport, {
      path: `${this.#path()}/events`,
      lastId,
      signal,
      isComplete,
    })) {
      yield JSON.parse(message.data) as RunEvent;
    }
  }

  /**
   * The timeline so far, oldest first.
   *
   * @example
   * ```ts
   * const run = await client.start("greet", { name: "Ada" });
   * console.log((await run.events().page()).items[0]?.type); // run.created
   * ```
   */
  events(options: ListOptions = {}): Pages<RunEvent> {
    return this.pages(`${this.#path()}/events`, options);
  }

  /**
   * What the run waits for: a limit and the runs that hold it, a worker, a timer, a person …
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * console.log((await run.why()).summary); // Step arrival is waiting for the signal delivered …
   * ```
   */
  why(options: RequestOptions = {}): Promise<Why> {
    return this.read(`${this.#path()}/why`, {}, options);
  }

  /**
   * Waits until the run asks a person, and returns the id of the question for `client.approvals`.
   *
   * @example
   * ```ts
   * const run = await client.start("refund", { amount: 120 });
   * await client.approvals.approve(await run.approval({ timeout: "10s" }));
   * ```
   */
  async approval(options: WaitOptions = {}): Promise<string> {
    const limited = deadline(options);
    try {
      for await (const event of this.watch(limited)) {
        const jobId = (event.data as { job_id?: string } | null)?.job_id ?? "";
        if (event.type === "approval.requested" && (await this.#isPending(jobId, limited))) return jobId;
      }
    } catch (error) {
      if (limited.signal?.reason === error && options.signal?.aborted !== true) throw timedOut(this.id, error);
      throw error;
    }
    throw new RunFailedError(await this.get(options));
  }

  async #isPending(jobId: string, options: RequestOptions): Promise<boolean> {
    const { status } = await this.read<{ status: string }>(`/api/v1/approvals/${segment(jobId)}`, {}, options);
    return status === "pending";
  }

  /**
   * Sends a signal to the run. If no step waits for it yet, it waits for its step.
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * await run.signal("delivered", { door: "green" }, { dedup_key: "scan-17" });
   * console.log((await run.result()) as string); // delivered
   * ```
   */
  signal(
    name: string,
    payload?: unknown,
    { dedup_key, ...options }: RunChangeOptions & SignalOptions = {},
  ): Promise<SignalResult> {
    return this.change("POST", `${this.#path()}/signals`, { name, payload, dedup_key }, options);
  }

  /**
   * Cancels the run. Nothing is compensated. Cancelling again changes nothing.
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * console.log((await run.cancel({ reason: "no longer wanted" })).status); // cancelled
   * ```
   */
  cancel(given: RunChangeOptions & { reason?: string } = {}): Promise<Run> {
    const [options, body] = split(given);
    return this.change("POST", `${this.#path()}/cancel`, body, options);
  }

  /**
   * Pauses the run: no step begins, running jobs may finish.
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * console.log((await run.pause()).status); // paused
   * ```
   */
  pause(options: RunChangeOptions = {}): Promise<Run> {
    return this.change("POST", `${this.#path()}/pause`, {}, options);
  }

  /**
   * Resumes a paused run.
   *
   * @example
   * ```ts
   * const run = await client.start("parcel");
   * await run.pause();
   * console.log((await run.resume()).status); // waiting
   * ```
   */
  resume(options: RunChangeOptions = {}): Promise<Run> {
    return this.change("POST", `${this.#path()}/resume`, {}, options);
  }

  /**
   * Retries the failed steps of a run that failed or timed out.
   *
   * @example
   * ```ts
   * const run = await client.start("order", { amount: -1 });
   * await run.wait();
   * await run.retry();
   * ```
   */
  retry(options: RunChangeOptions = {}): Promise<Run> {
    return this.change("POST", `${this.#path()}/retry`, {}, options);
  }

  /**
   * Starts a new run with the same input, from a step or from the beginning.
   *
   * @example
   * ```ts
   * const run = await client.start("greet", { name: "Ada" });
   * await run.wait();
   * const again = await run.rerun({ from_step: "hello" });
   * console.log((await again.wait()).rerun_of === run.id); // true
   * ```
   */
  async rerun(given: RunChangeOptions & { from_step?: string } = {}): Promise<RunHandle<Output>> {
    const [options, body] = split(given);
    const started = await this.change<StartedRun>("POST", `${this.#path()}/rerun`, body, options);
    return new RunHandle<Output>(this.transport, started.run_id, started);
  }

  #path(): string {
    return `/api/v1/runs/${segment(this.id)}`;
  }
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  const iterator = events[Symbol.asyncIterator]();
  while ((await iterator.next()).done !== true);
}

function deadline({ signal, timeout }: WaitOptions): RequestOptions {
  if (timeout === undefined) return signal === undefined ? {} : { signal };
  const limit = AbortSignal.timeout(Math.ceil(toMs(timeout)));
  return { signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) };
}

function timedOut(id: string, cause: unknown): WaitTimeoutError {
  return new WaitTimeoutError(`Run ${id} has not got there in the given time`, { cause });
}
