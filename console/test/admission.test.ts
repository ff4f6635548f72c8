import { describe, expect, it } from "vitest";
import type { SettingsVersion } from "../src/api/types";
import { percentile } from "../src/logic/histogram";
import { figuresOf, samplesOf } from "../src/logic/metrics";
import { changesOf } from "../src/logic/settings";

const SETTINGS: SettingsVersion["settings"] = {
  name: null,
  max_concurrent_runs: null,
  max_queued_runs: 10,
  at_limit: "reject",
  idempotency_retention_s: null,
  run_retention_s: null,
  gate: { max_wait_ms: 0, lock_ttl_ms: 0, retry_delay_ms: 0, policy: "fixed" },
  rate_limit: null,
  weight: 1,
};

describe("changes of settings", () => {
  it("names what differs, with none for no limit", () => {
    expect(changesOf({ ...SETTINGS, max_concurrent_runs: 5 }, SETTINGS)).toEqual([{ name: "active runs", from: "none", to: "5" }]);
  });
  it("compares members as a whole, and says nothing of the first version", () => {
    expect(changesOf({ ...SETTINGS, rate_limit: { per_second: 1, burst: 2 } }, SETTINGS)).toHaveLength(1);
    expect(changesOf(SETTINGS, undefined)).toEqual([]);
  });
});

describe("percentiles of a histogram", () => {
  const samples = samplesOf(
    ['w_bucket{tenant="a",le="0.1"} 90', 'w_bucket{tenant="a",le="1"} 99', 'w_bucket{tenant="a",le="+Inf"} 100', 'w_bucket{tenant="b",le="+Inf"} 7'].join("\n"),
  );
  it("finds the bound that the share lies below, of the tenant that is asked for", () => {
    expect(percentile(samples, "w", { tenant: "a" }, 0.5)).toBe(0.1);
    expect(percentile(samples, "w", { tenant: "a" }, 0.95)).toBe(1);
    expect(percentile(samples, "w", { tenant: "a" }, 1)).toBe(Infinity);
  });
  it("is null without observations", () => {
    expect(percentile(samples, "w", { tenant: "c" }, 0.5)).toBeNull();
  });
});

describe("what has become of a tenant's starts", () => {
  it("counts replays apart from what was refused at a limit", () => {
    const line = (tenant: string, outcome: string, n: number): string => `pawl_admissions_total{tenant="${tenant}",outcome="${outcome}"} ${n}`;
    const text = [line("a", "admitted", 5), line("a", "replayed", 3), line("a", "limited", 2), line("a", "queue_full", 1), line("b", "admitted", 9)].join("\n");
    expect(figuresOf(samplesOf(text), "a", 7)).toEqual({ at: 7, admitted: 5, refused: 3, replays: 3, mismatches: 0 });
  });
});
