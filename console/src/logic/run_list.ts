// The list of runs, kept up to date from events.
import type { RunStatus, RunSummary } from "../api/types";

/** The status that an event leaves a run in. Events that are not here need a look at the run. */
const STATUS_AFTER: Record<string, RunStatus> = {
  "run.queued": "queued",
  "run.paused": "paused",
  "run.succeeded": "succeeded",
  "run.failed": "failed",
  "run.timed_out": "timed_out",
  "run.denied": "denied",
  "run.cancelled": "cancelled",
};

export interface Change {
  type: string;
  time: string;
  run_id: string;
}

/** Applies the events whose outcome is known; the same array when nothing changed. */
export function applyEvents(runs: RunSummary[], events: readonly Change[]): RunSummary[] {
  const last = new Map<string, { status: RunStatus; time: string }>();
  for (const { type, time, run_id } of events) {
    const status = STATUS_AFTER[type];
    if (status === undefined) last.delete(run_id);
    else last.set(run_id, { status, time });
  }
  const next = runs.map((run) => {
    const found = last.get(run.id);
    if (found === undefined || found.status === run.status) return run;
    const over = found.status !== "queued" && found.status !== "paused";
    return { ...run, status: found.status, finished_at: over ? found.time : run.finished_at };
  });
  return next.some((run, i) => run !== runs[i]) ? next : runs;
}

/** A fresh first page in front of what was read before: newest first, each run once, the newer version wins. */
export function mergeFirstPage(runs: readonly RunSummary[], page: readonly RunSummary[]): RunSummary[] {
  const known = new Map(runs.map((run) => [run.id, run]));
  for (const run of page) {
    const old = known.get(run.id);
    if (old === undefined || old.version <= run.version) known.set(run.id, run);
  }
  return [...known.values()].sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
}

export interface Filter {
  /** A word that a run is looked for by: the beginning of its id, its key, a label, a part of its error. */
  q?: string | undefined;
  /** One, or several with commas. */
  status?: string | undefined;
  workflow_id?: string | undefined;
  label?: string | undefined;
}

/** A run that has left the status that is asked for stays away after the next read, not while one looks at it. */
export function filterOf(query: URLSearchParams): Filter {
  const text = (name: string): string | undefined => {
    const given = query.get(name);
    return given === null || given === "" ? undefined : given;
  };
  return { q: text("q"), status: text("status"), workflow_id: text("workflow"), label: text("label") };
}

export function queryOf(filter: Filter): string {
  const query = new URLSearchParams();
  if (filter.q !== undefined) query.set("q", filter.q);
  if (filter.status !== undefined) query.set("status", filter.status);
  if (filter.workflow_id !== undefined) query.set("workflow", filter.workflow_id);
  if (filter.label !== undefined) query.set("label", filter.label);
  const text = query.toString().replaceAll("%2C", ",");
  return text === "" ? "" : `?${text}`;
}
