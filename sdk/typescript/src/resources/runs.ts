/** Runs, as a list. One run is a {@link RunHandle}. */

import type { BulkResult, Run, RunStatus, RunSummary } from "../wire.js";
import {
  Pages,
  Resource,
  segment,
  split,
  type ChangeOptions,
  type ListOptions,
  type RequestOptions,
} from "./resource.js";

/** Which runs. */
export interface RunFilter {
  status?: RunStatus;
  workflow_id?: string;
  /** `NAME:VALUE` */
  label?: string;
  created_after?: string;
  created_before?: string;
}

/** What to do with many runs. */
export interface BulkOptions extends ChangeOptions {
  action: "cancel" | "pause" | "resume" | "retry";
  filter: RunFilter;
  /** Only counts; changes nothing. */
  dry_run?: boolean;
  /** Continues where the last call ended. */
  cursor?: string;
  reason?: string;
}

/** The routes of runs: `client.runs`. */
export class Runs extends Resource {
  /**
   * A run with its steps.
   *
   * @example
   * ```ts
   * const { id } = await client.start("greet", { name: "Ada" });
   * console.log((await client.runs.get(id)).status);
   * ```
   */
  get(id: string, options: RequestOptions = {}): Promise<Run> {
    return this.read(`/api/v1/runs/${segment(id)}`, {}, options);
  }

  /**
   * The runs that match, newest first, without their steps.
   *
   * @example
   * ```ts
   * const { items } = await client.runs.list({ status: "waiting", limit: 10 }).page();
   * console.log(items.map((run) => run.workflow_id));
   * ```
   */
  list(options: ListOptions & RunFilter = {}): Pages<RunSummary> {
    return this.pages("/api/v1/runs", options);
  }

  /**
   * Changes up to 200 runs in one commit; `next_cursor` continues with the rest.
   *
   * @example
   * ```ts
   * const filter = { workflow_id: "parcel", label: "batch:7" };
   * const { matched } = await client.runs.bulk({ action: "cancel", filter, dry_run: true });
   * console.log(matched); // 0
   * ```
   */
  bulk(given: BulkOptions): Promise<BulkResult> {
    const [options, body] = split(given);
    return this.change("POST", "/api/v1/runs:bulk", body, options);
  }
}
