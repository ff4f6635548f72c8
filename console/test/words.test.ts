import { describe, expect, test } from "vitest";
import type { Decision } from "../src/api/types";
import { curl, quoted } from "../src/logic/curl";
import { outcomeOf } from "../src/logic/decision";
import { errorText } from "../src/logic/error";
import { actionsIn, familyOf, RUN_STATUSES } from "../src/logic/status";
import { plural, times } from "../src/logic/words";

describe("curl", () => {
  test("says no more than needed", () => {
    expect(curl({ method: "GET", url: "http://h/api/v1/runs" })).toBe("curl http://h/api/v1/runs");
    expect(curl({ method: "POST", url: "http://h/x", body: { a: 1 } })).toBe(`curl --json '{"a":1}' http://h/x`);
    expect(curl({ method: "PUT", url: "http://h/x?a=1&b=2", body: {}, headers: { "X-Tenant-ID": "t" } })).toBe(
      `curl -X PUT -H 'X-Tenant-ID: t' --json '{}' 'http://h/x?a=1&b=2'`,
    );
  });
  test("no text leaves its quotes", () => expect(quoted(`it's $(here)`)).toBe(`'it'\\''s $(here)'`));
});

describe("decisions", () => {
  const decision = (more: Partial<Decision>): Decision => ({ job_id: "j", run_id: "r", reason: null, run_status: "running", status: "approved", ...more });
  const at = { approved_by: "ann", approved_at: "2026-11-16T12:00:00.000Z" };
  test("a second press says that it counted once", () => {
    expect(outcomeOf(decision(at), 0)).toBe("Approved by ann at 2026-11-16 12:00:00.000 UTC. The run goes on.");
    expect(outcomeOf(decision({ ...at, status: "already_approved" }), 0)).toContain("Nothing happened twice");
  });
  test("a vote says how many are missing", () => expect(outcomeOf(decision({ status: "recorded", approvals: 1, needed: 2 }))).toContain("1 of 2"));
});

test("numbers are words where people expect them", () => {
  expect([1, 2, 3].map(times)).toEqual(["once", "twice", "3 times"]);
  expect([0, 1, 2].map((n) => plural(n, "worker"))).toEqual(["0 workers", "1 worker", "2 workers"]);
});

describe("errors", () => {
  test("of a run name the step and the cause", () => {
    expect(errorText({ code: "STEP_FAILED", step: "mail", cause: { code: "X", message: "no" } })).toBe("Step mail: STEP_FAILED: X: no");
  });
  test.each([[null], [undefined], [7], [{}], [[1]]])("%j says nothing", (error) => expect(errorText(error)).toBe(""));
});

describe("statuses", () => {
  test("each has a family", () => expect(RUN_STATUSES.map(familyOf)).not.toContain(undefined));
  test("offer only what the server accepts", () => {
    expect(actionsIn("running")).toEqual(["pause", "cancel"]);
    expect(actionsIn("paused")).toEqual(["resume", "cancel"]);
    expect(actionsIn("queued")).toEqual(["cancel"]);
    expect(actionsIn("succeeded")).toEqual(["rerun"]);
    expect(actionsIn("failed")).toEqual(["retry", "rerun"]);
    expect(actionsIn("timed_out")).toEqual(["retry", "rerun"]);
    expect(actionsIn("cancelled")).toEqual(["rerun"]);
  });
});
