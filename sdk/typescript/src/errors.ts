/**
 * Errors. An answer that is a problem becomes an {@link ApiError}, of a class that its code chooses. No answer at all is
 * a {@link NoAnswerError}. All of them are {@link PawlError}s.
 */

import type { Problem, ProblemCode, Run } from "./wire.js";

/**
 * The base of all errors that this library throws.
 *
 * @example
 * ```ts
 * try {
 *   await client.runs.get("01a1dd2e-8946-7a83-9583-28ee238e3a10");
 * } catch (error) {
 *   if (error instanceof PawlError) console.log(error.message);
 * }
 * ```
 */
export class PawlError extends Error {
  override name = "PawlError";
}

/** The members that a problem with this code always has, beyond those of every problem. */
export interface ProblemDetails {
  MAX_CONCURRENT_RUNS: Required<Pick<Problem, "current" | "limit" | "limited_by">>;
  QUEUE_FULL: Required<Pick<Problem, "current" | "limit" | "limited_by">>;
  INBOX_FULL: Required<Pick<Problem, "current" | "limit" | "limited_by">>;
  RATE_LIMITED: Required<Pick<Problem, "current" | "limit" | "limited_by" | "per_second">>;
  CONCURRENCY_ERROR: Required<Pick<Problem, "expected" | "actual">>;
  APPROVAL_CONFLICT: Required<Pick<Problem, "decision" | "decided_by" | "decided_at">>;
  APPROVAL_EXPIRED: Required<Pick<Problem, "outcome" | "expired_at">>;
  APPROVAL_STALE: Required<Pick<Problem, "content_hash">>;
  DEFINITION_INVALID: Required<Pick<Problem, "errors">>;
  INPUT_INVALID: Required<Pick<Problem, "errors">>;
}

/** A problem with the code `C`, and the members that this code brings. */
export type ProblemOf<C extends ProblemCode> = Problem & { code: C } & (C extends keyof ProblemDetails
    ? ProblemDetails[C]
    : unknown);

/** An error with the code `C`: what {@link ApiError.is} finds. */
export type ApiErrorOf<C extends ProblemCode> = ApiError & { readonly code: C; readonly problem: ProblemOf<C> };

/**
 * The server answered with a problem. `code` is stable and says which; `retryable` says whether the same request may
 * succeed later. The library has already retried what can be retried.
 *
 * @example
 * ```ts
 * try {
 *   await client.start("no-such-workflow");
 * } catch (error) {
 *   if (!(error instanceof ApiError)) throw error;
 *   console.log(error.status, error.code, error.message); // 404 WORKFLOW_NOT_FOUND …
 * }
 * ```
 */
export class ApiError extends PawlError {
  override name = "ApiError";

  /** The problem as the server sent it. */
  readonly problem: Problem;

  /** What `Retry-After` asked for, in seconds; undefined if the answer had none. */
  readonly retryAfterS: number | undefined;

  constructor(problem: Problem, retryAfterS?: number) {
    super(`${problem.code}: ${problem.detail === "" ? problem.title : problem.detail}`);
    this.problem = problem;
    this.retryAfterS = retryAfterS;
  }

  /** The stable code, such as `MAX_CONCURRENT_RUNS`. */
  get code(): ProblemCode {
    return this.problem.code;
  }

  /** The HTTP status. */
  get status(): number {
    return this.problem.status;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.problem.retryable;
  }

  /** The trace id of the request, for the server's logs. */
  get traceId(): string {
    return this.problem.trace_id;
  }

  /**
   * Whether an error is a problem with one of these codes. The type of `problem` follows the code.
   *
   * @example
   * ```ts
   * try {
   *   await client.start("greet", { name: "Ada" }, { at_limit: "reject" });
   * } catch (error) {
   *   if (!ApiError.is(error, "MAX_CONCURRENT_RUNS")) throw error;
   *   console.log(`${error.problem.current} of ${error.problem.limit} runs are active`);
   * }
   * ```
   */
  static is<C extends ProblemCode>(error: unknown, ...codes: C[]): error is ApiErrorOf<C> {
    return error instanceof ApiError && (codes as string[]).includes(error.code);
  }
}

/** The request is wrong: the same request will be refused again. */
export class InvalidRequestError extends ApiError {
  override name = "InvalidRequestError";
}

/** The key belongs to another request, which is not affected (`IDEMPOTENCY_KEY_REUSED`). */
export class KeyReusedError extends InvalidRequestError {
  override name = "KeyReusedError";
}

/** The API key is missing, unknown or revoked. */
export class UnauthenticatedError extends ApiError {
  override name = "UnauthenticatedError";
}

/** The role or the tenant of the API key does not allow this. */
export class ForbiddenError extends ApiError {
  override name = "ForbiddenError";
}

/** It does not exist, or belongs to another tenant. */
export class NotFoundError extends ApiError {
  override name = "NotFoundError";
}

/** The current state does not allow the request. */
export class ConflictError extends ApiError {
  override name = "ConflictError";
}

/** The worker no longer has the job (`LEASE_LOST`): its result counts for nothing. */
export class LeaseLostError extends ConflictError {
  override name = "LeaseLostError";
}

/** The approval is decided, expired, or shows other content by now. */
export class ApprovalConflictError extends ConflictError {
  override name = "ApprovalConflictError";
}

/** A limit is reached (429). Nothing was stored; the same request may succeed later. */
export class LimitReachedError extends ApiError {
  override name = "LimitReachedError";
}

/** The server cannot do it now (503). Retry with the same key. */
export class UnavailableError extends ApiError {
  override name = "UnavailableError";
}

/** A fault of the server (500). */
export class ServerFaultError extends ApiError {
  override name = "ServerFaultError";
}

/**
 * No answer arrived, so the outcome is unknown. Send the same request with the same key to learn it.
 *
 * @example
 * ```ts
 * const nobody = new Client({ url: "http://127.0.0.1:4", retry: { maxAttempts: 1 } });
 * await nobody.server.health().catch((error: unknown) => {
 *   if (!(error instanceof NoAnswerError)) throw error;
 *   console.log(error.message); // No pawl server at http://127.0.0.1:4 …
 * });
 * ```
 */
export class NoAnswerError extends PawlError {
  override name = "NoAnswerError";
}

/**
 * Something took longer than the time that the caller allowed.
 *
 * @example
 * ```ts
 * const run = await client.start("parcel");
 * await run.wait({ timeout: "10ms" }).catch((error: unknown) => {
 *   if (!(error instanceof WaitTimeoutError)) throw error; // the run itself goes on
 * });
 * ```
 */
export class WaitTimeoutError extends PawlError {
  override name = "WaitTimeoutError";
}

/**
 * The run whose result was asked for did not succeed. `run` shows it, `code` is the code of its error.
 *
 * @example
 * ```ts
 * try {
 *   await client.execute("order", { amount: -1 });
 * } catch (error) {
 *   if (!(error instanceof RunFailedError)) throw error;
 *   console.log(error.run.status, error.code); // failed STEP_FAILED
 * }
 * ```
 */
export class RunFailedError extends PawlError {
  override name = "RunFailedError";

  /** The code of the run's error, such as `STEP_FAILED`; its status if it has none. */
  readonly code: string;

  constructor(readonly run: Run) {
    const error = run.error as { code?: string; step?: string; cause?: { code?: string; message?: string } } | null;
    const code = error?.code ?? run.status.toUpperCase();
    const where = error?.step === undefined ? "" : ` in step ${error.step}`;
    const cause = error?.cause?.message ?? error?.cause?.code;
    super(`Run ${run.id} ended as ${run.status}: ${code}${where}${cause === undefined ? "" : `: ${cause}`}`);
    this.code = code;
  }
}

type ApiErrorClass = new (problem: Problem, retryAfterS?: number) => ApiError;

const BY_CODE: Partial<Record<ProblemCode, ApiErrorClass>> = {
  IDEMPOTENCY_KEY_REUSED: KeyReusedError,
  LEASE_LOST: LeaseLostError,
  APPROVAL_CONFLICT: ApprovalConflictError,
  APPROVAL_EXPIRED: ApprovalConflictError,
  APPROVAL_STALE: ApprovalConflictError,
  NOT_AWAITING_APPROVAL: ApprovalConflictError,
};

const BY_STATUS: Partial<Record<number, ApiErrorClass>> = {
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  429: LimitReachedError,
  500: ServerFaultError,
  505: InvalidRequestError,
};

/** The error for a problem: its code decides the class where it is known, otherwise its status. */
export function apiError(problem: Problem, retryAfterS?: number): ApiError {
  const byStatus = BY_STATUS[problem.status] ?? (problem.status >= 500 ? UnavailableError : InvalidRequestError);
  const constructor = BY_CODE[problem.code] ?? byStatus;
  return new constructor(problem, retryAfterS);
}
