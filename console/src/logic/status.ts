// What each status of a run or a job means to a reader: its family, which decides its color and mark, and whether it is
// the end. A status that is added to the API fails the compiler here.
import type { ApprovalStatus, JobState, RunStatus } from "../api/types";

export type Family = "waiting" | "active" | "good" | "bad" | "idle";

const RUN: Record<RunStatus, Family> = {
  queued: "waiting",
  pending: "waiting",
  running: "active",
  waiting: "waiting",
  paused: "idle",
  succeeded: "good",
  failed: "bad",
  denied: "bad",
  cancelled: "idle",
  timed_out: "bad",
};

const JOB: Record<JobState, Family> = {
  approval: "waiting",
  pending: "waiting",
  scheduled: "waiting",
  suspended: "waiting",
  dispatched: "active",
  running: "active",
  succeeded: "good",
  failed: "bad",
  denied: "bad",
  cancelled: "idle",
  timed_out: "bad",
  skipped: "idle",
};

const APPROVAL: Record<Exclude<ApprovalStatus, "pending">, Family> = { approved: "good", rejected: "bad", expired: "bad", void: "idle" };

export const RUN_STATUSES = Object.keys(RUN) as RunStatus[];

/** Not by color alone: each family has a mark too. */
export const MARKS: Record<Family, string> = { waiting: "◷", active: "▶", good: "✓", bad: "✕", idle: "–" };

export function familyOf(status: string): Family {
  return ({ ...APPROVAL, ...JOB, ...RUN } as Record<string, Family>)[status] ?? "idle";
}

export function isOver(status: RunStatus): boolean {
  return ["succeeded", "failed", "denied", "cancelled", "timed_out"].includes(status);
}

/** "timed_out" → "timed out"; a step that waits for approval has the state "approval". */
export function worded(status: string): string {
  return status === "approval" ? "needs approval" : status.replaceAll("_", " ");
}

export type Action = "cancel" | "pause" | "resume" | "retry" | "rerun";

/** What the server would accept in this status. */
export function actionsIn(status: RunStatus): Action[] {
  switch (status) {
    case "queued":
    case "pending":
      return ["cancel"];
    case "running":
    case "waiting":
      return ["pause", "cancel"];
    case "paused":
      return ["resume", "cancel"];
    case "failed":
    case "timed_out":
      return ["retry", "rerun"];
    case "succeeded":
    case "denied":
    case "cancelled":
      return ["rerun"];
  }
}
