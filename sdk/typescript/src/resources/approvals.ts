/** Decisions by people. */

import type { Approval, ApprovalAnalytics, ApprovalStatus, ApprovalSummary, Decision } from "../wire.js";
import {
  Pages,
  Resource,
  segment,
  split,
  type ChangeOptions,
  type ListOptions,
  type RequestOptions,
} from "./resource.js";

/** A decision. */
export interface DecideOptions extends ChangeOptions {
  reason?: string;
  /** Decides only if the content is still the one with this `content_hash`; otherwise `APPROVAL_STALE`. */
  expected_hash?: string;
  /** Approves this content instead. */
  edited?: unknown;
}

/** The routes of approvals: `client.approvals`. */
export class Approvals extends Resource {
  /**
   * Approvals, newest first.
   *
   * @example
   * ```ts
   * for await (const { prompt, job_id } of client.approvals.list({ status: "pending" })) console.log(job_id, prompt);
   * ```
   */
  list(options: ListOptions & { status?: ApprovalStatus } = {}): Pages<ApprovalSummary> {
    return this.pages("/api/v1/approvals", options);
  }

  /**
   * One approval with its content and votes.
   *
   * @example
   * ```ts
   * const run = await client.start("refund", { amount: 120 });
   * const approval = await client.approvals.get(await run.approval());
   * console.log(approval.prompt); // Refund 120?
   * ```
   */
  get(jobId: string, options: RequestOptions = {}): Promise<Approval> {
    return this.read(`/api/v1/approvals/${segment(jobId)}`, {}, options);
  }

  /**
   * Approves. The same decision again is answered with the first one; the opposite is an `ApprovalConflictError`.
   *
   * @example
   * ```ts
   * const run = await client.start("refund", { amount: 120 });
   * const { status } = await client.approvals.approve(await run.approval(), { reason: "agreed by mail" });
   * console.log(status); // approved
   * ```
   */
  approve(jobId: string, given: DecideOptions = {}): Promise<Decision> {
    return this.#decide(jobId, "approve", given);
  }

  /**
   * Rejects. One rejection is enough.
   *
   * @example
   * ```ts
   * const run = await client.start("refund", { amount: 120 });
   * await client.approvals.reject(await run.approval(), { reason: "too much" });
   * console.log((await run.wait()).status); // denied
   * ```
   */
  reject(jobId: string, given: Omit<DecideOptions, "edited"> = {}): Promise<Decision> {
    return this.#decide(jobId, "reject", given);
  }

  #decide(jobId: string, verb: "approve" | "reject", given: DecideOptions): Promise<Decision> {
    const [options, body] = split(given);
    return this.change("POST", `/api/v1/approvals/${segment(jobId)}/${verb}`, body, options);
  }

  /**
   * How long decisions take, and how often they are repeated or contradicted.
   *
   * @example
   * ```ts
   * const { total } = await client.approvals.analytics({ days: 7 });
   * console.log(total.decision_seconds.p95);
   * ```
   */
  analytics(options: RequestOptions & { days?: number; workflow_id?: string } = {}): Promise<ApprovalAnalytics> {
    const { signal, ...query } = options;
    return this.read("/api/v1/approvals/analytics", query, signal === undefined ? {} : { signal });
  }
}
