/** How tasks fail. */

import { ApiError, PawlError } from "../errors.js";
import type { JobError } from "../wire.js";

/**
 * Throw it in a handler to fail with a code. Any other error is reported with its class as the code, and may be retried.
 *
 * @example
 * ```ts
 * worker.task("cards.charge", (input: { amount: number }) => {
 *   if (input.amount > 1000) throw new TaskError("CARD_DECLINED", "no funds", { retryable: false });
 *   return { charge: "ch_1" };
 * });
 * ```
 */
export class TaskError extends PawlError {
  override name = "TaskError";
  /** Whether the same input may succeed later; default true. */
  readonly retryable: boolean;
  /** Any JSON, for programs. */
  readonly details: unknown;

  constructor(
    /** For programs: matched against `non_retryable`, seen by expressions. */
    readonly code: string,
    message = "",
    { retryable = true, details, cause }: { retryable?: boolean; details?: unknown; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.retryable = retryable;
    this.details = details;
  }
}

/**
 * A step of a durable function has failed, and no attempt is left. It is stored: the function sees the same error whenever
 * it is run again. Catch it to undo what was done; uncaught, it fails the job.
 *
 * @example
 * ```ts
 * worker.task("orders.ship", async (_input, ctx) => {
 *   try {
 *     await ctx.step("parcel", () => Promise.reject(new TaskError("NO_STOCK", "sold out", { retryable: false })));
 *   } catch (error) {
 *     if (error instanceof StepError) await ctx.step("refund", () => console.log("refund, because of", error.code));
 *     throw error;
 *   }
 * });
 * ```
 */
export class StepError extends TaskError {
  override name = "StepError";

  constructor(
    /** The name of the step. */
    readonly step: string,
    error: JobError,
    cause?: unknown,
  ) {
    super(error.code, error.message ?? "", { retryable: false, details: error.details, cause });
  }
}

/** Why a handler should stop: `ctx.signal.reason`. Its result is not reported. */
export class JobStoppedError extends PawlError {
  override name = "JobStoppedError";

  constructor(
    /** The run was cancelled, another worker has the job, or this worker stops. */
    readonly why: "cancelled" | "lease_lost" | "stopping",
  ) {
    super({ cancelled: "The run was cancelled", lease_lost: "The lease was lost", stopping: "The worker stops" }[why]);
  }
}

/** What is reported for an error that a handler threw. */
export function jobError(error: unknown): JobError {
  if (error instanceof TaskError) {
    const reported: JobError = { code: error.code, message: error.message, retryable: error.retryable };
    if (error.details !== undefined) reported.details = error.details;
    return reported;
  }
  if (error instanceof ApiError) {
    return { code: error.code, message: error.problem.detail, retryable: error.retryable };
  }
  if (!(error instanceof Error)) return { code: "Error", message: String(error), retryable: true };
  const { code } = error as { code?: unknown };
  return { code: typeof code === "string" ? code : error.name, message: error.message, retryable: true };
}
