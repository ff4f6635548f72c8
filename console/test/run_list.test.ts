import { describe, expect, test } from "vitest";
import type { RunSummary } from "../src/api/types";
import { applyEvents, filterOf, mergeFirstPage, queryOf } from "../src/logic/run_list";

const run = (id: string, status: RunSummary["status"] = "running", version = 1): RunSummary => ({ id, status, version, finished_at: null }) as RunSummary;
const told = (run_id: string, type: string) => ({ run_id, type, time: "2026-11-16T12:00:00.000Z" });

describe("events", () => {
  test("change the status of the runs that they name, and when those ended", () => {
    const runs = [run("2"), run("1")];
    const next = applyEvents(runs, [told("1", "run.failed"), told("9", "run.failed")]);
    expect(next.map((r) => r.status)).toEqual(["running", "failed"]);
    expect(next[1]?.finished_at).toBe("2026-11-16T12:00:00.000Z");
    expect(next[0]).toBe(runs[0]);
  });
  test("the last one counts, and one with an unknown outcome changes nothing", () => {
    expect(applyEvents([run("1")], [told("1", "run.paused"), told("1", "run.cancelled")])[0]?.status).toBe("cancelled");
    const runs = [run("1", "paused")];
    expect(applyEvents(runs, [told("1", "run.failed"), told("1", "run.retried")])).toBe(runs);
  });
  test("a paused run has not ended", () => expect(applyEvents([run("1")], [told("1", "run.paused")])[0]?.finished_at).toBeNull());
});

describe("merging", () => {
  test("new runs come first, each is there once, the newer version wins", () => {
    const merged = mergeFirstPage([run("3", "running", 5), run("2"), run("1")], [run("4"), run("3", "succeeded", 7), run("2", "queued", 0)]);
    expect(merged.map((r) => [r.id, r.status])).toEqual([
      ["4", "running"],
      ["3", "succeeded"],
      ["2", "running"],
      ["1", "running"],
    ]);
  });
  test("pages that overlap while runs are added lose none", () => {
    const all = Array.from({ length: 50 }, (_, i) => run(String(100 + i)));
    const newest = [...all].reverse();
    expect(mergeFirstPage(newest.slice(10, 30), newest.slice(0, 20)).map((r) => r.id)).toEqual(newest.slice(0, 30).map((r) => r.id));
  });
});

test("a filter survives the address bar", () => {
  const filter = { q: "50% & more", status: "failed,timed_out", workflow_id: "a b", label: "team:shop & co" } as const;
  expect(filterOf(new URLSearchParams(queryOf(filter)))).toEqual(filter);
  expect(queryOf({})).toBe("");
  expect(queryOf({ status: "failed,timed_out" })).toBe("?status=failed,timed_out");
});
