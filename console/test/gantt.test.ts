import { describe, expect, test } from "vitest";
import type { RunEvent } from "../src/api/types";
import { extent, ganttOf, ticks } from "../src/logic/gantt";

let seq = 0;
const at = (second: number): string => new Date(second * 1_000).toISOString();
const event = (second: number, type: RunEvent["type"], data: Record<string, unknown> = {}): RunEvent => ({
  seq: ++seq,
  type,
  at: at(second),
  data: { job_id: "j", step: "a", ...data },
});

describe("bars", () => {
  test("an attempt that fails, the wait for the next, and the one that succeeds", () => {
    const error = { code: "X", message: "no" };
    const [row] = ganttOf([
      event(1, "job.created", { attempt: 0 }),
      event(2, "job.claimed", { attempt: 1, worker_id: "w" }),
      event(4, "job.retry_scheduled", { attempt: 1, error }),
      event(5, "job.created", { attempt: 1 }),
      event(6, "job.claimed", { attempt: 2 }),
      event(9, "job.succeeded", { attempt: 2 }),
    ]);
    expect(row?.spans.map((s) => [s.kind, s.from / 1_000, (s.to ?? 0) / 1_000, s.outcome])).toEqual([
      ["ready", 1, 2, null],
      ["attempt", 2, 4, "failed"],
      ["retry", 4, 5, null],
      ["ready", 5, 6, null],
      ["attempt", 6, 9, "succeeded"],
    ]);
    expect(row?.spans[1]).toMatchObject({ worker: "w", attempt: 1, error });
  });
  test("a lease that expired is a failed attempt, and the job waits again", () => {
    const [row] = ganttOf([event(1, "job.claimed"), event(3, "job.lease_expired")]);
    expect(row?.spans.map((s) => [s.kind, s.outcome, s.to])).toEqual([
      ["attempt", "failed", 3_000],
      ["ready", null, null],
    ]);
  });
  test("compensation is a job of its own", () => {
    const rows = ganttOf([event(1, "job.created"), event(2, "job.created", { job_id: "k", compensates: true })]);
    expect(rows.map((row) => [row.job, row.compensates])).toEqual([
      ["j", false],
      ["k", true],
    ]);
  });
  test("an approval ends when it is decided by the end of its job", () => {
    const [row] = ganttOf([event(1, "job.created"), event(1, "approval.requested"), event(4, "job.succeeded")]);
    expect(row?.spans.at(-1)).toMatchObject({ kind: "approval", to: 4_000, outcome: "succeeded" });
  });
  test("events of the run itself and results of lost leases draw nothing", () => {
    const run: RunEvent = { seq: 1, type: "run.created", at: at(0), data: null };
    expect(ganttOf([run, event(2, "job.stale_result")])).toEqual([]);
  });
});

describe("axis", () => {
  test("reaches from the run's beginning to now, or to its end", () => {
    expect(extent([], 1_000, null, 5_000)).toEqual({ from: 1_000, to: 5_000 });
    expect(extent([], 1_000, 3_000, 5_000)).toEqual({ from: 1_000, to: 3_000 });
  });
  test("is never empty", () => expect(extent([], 1_000, 1_000, 5_000)).toEqual({ from: 1_000, to: 1_001 }));
  test.each([1, 37, 4_800, 61_000, 86_400_000, 9e9])("has a few round marks for %d ms", (length) => {
    const marks = ticks(length, 5);
    expect(marks[0]).toBe(0);
    expect(marks.length).toBeLessThanOrEqual(7);
  });
});
