// A run's timeline as bars: for each job what it waited for, its attempts, and how each of them ended.
import type { RunEvent } from "../api/types";

export type SpanKind = "ready" | "attempt" | "retry" | "sleep" | "approval" | "suspended";

export interface Span {
  kind: SpanKind;
  from: number;
  to: number | null; // null: it goes on
  attempt: number;
  outcome: "succeeded" | "failed" | "cancelled" | null;
  worker?: string;
  error?: unknown;
}

export interface Row {
  job: string;
  step: string;
  item: number | null; // of a step with for_each
  compensates: boolean;
  spans: Span[];
}

interface JobData {
  job_id: string;
  step: string;
  attempt?: number;
  item?: number;
  compensates?: boolean;
  worker_id?: string;
  error?: unknown;
}

/** The span that begins with an event; a job is in one at a time. */
const BEGINS: Record<string, SpanKind> = {
  "job.created": "ready",
  "job.released": "ready",
  "job.retried": "ready",
  "job.resumed": "ready",
  "job.claimed": "attempt",
  "job.dispatched": "attempt",
  "job.scheduled": "sleep",
  "job.suspended": "suspended",
  "job.retry_scheduled": "retry",
  "job.lease_expired": "ready",
  "approval.requested": "approval",
};

/** How the span before an event ended. */
const ENDS: Record<string, Span["outcome"]> = {
  "job.succeeded": "succeeded",
  "job.retry_scheduled": "failed",
  "job.lease_expired": "failed",
  "job.failed": "failed",
  "job.timed_out": "failed",
  "job.denied": "failed",
  "job.cancelled": "cancelled",
};

function hasJob(data: unknown): data is JobData {
  return typeof data === "object" && data !== null && "job_id" in data && "step" in data;
}

/** Jobs in the order in which they began. */
export function ganttOf(events: readonly RunEvent[]): Row[] {
  const rows = new Map<string, Row>();
  for (const event of events) {
    if (!hasJob(event.data)) continue;
    if (BEGINS[event.type] === undefined && ENDS[event.type] === undefined) continue;
    const row = rows.get(event.data.job_id) ?? newRow(event.data);
    rows.set(row.job, row);
    advance(row, event.type, Date.parse(event.at), event.data);
  }
  return [...rows.values()];
}

function newRow(data: JobData): Row {
  return { job: data.job_id, step: data.step, item: data.item ?? null, compensates: data.compensates === true, spans: [] };
}

function advance(row: Row, type: string, at: number, data: JobData): void {
  const outcome = ENDS[type];
  const open = row.spans.at(-1);
  if (open?.to === null) {
    open.to = at;
    if (outcome !== undefined) open.outcome = outcome;
    if (data.error !== undefined) open.error = data.error;
  }
  const kind = BEGINS[type];
  if (kind === undefined) return;
  const worker = kind === "attempt" && data.worker_id !== undefined ? { worker: data.worker_id } : {};
  row.spans.push({ kind, from: at, to: null, attempt: data.attempt ?? 0, outcome: null, ...worker });
}

/** From the run's beginning to its end, or to now; never empty. */
export function extent(rows: readonly Row[], begin: number, end: number | null, now: number): { from: number; to: number } {
  let to = end ?? now;
  for (const row of rows) for (const span of row.spans) to = Math.max(to, span.to ?? span.from);
  return { from: begin, to: Math.max(to, begin + 1) };
}

/** About `count` round times for the axis, in milliseconds after the beginning. */
export function ticks(length: number, count: number): number[] {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];
  const wanted = length / Math.max(1, count);
  const step = steps.find((s) => s >= wanted) ?? Math.ceil(wanted / 864e5) * 864e5;
  const found: number[] = [];
  for (let at = 0; at <= length; at += step) found.push(at);
  return found;
}
