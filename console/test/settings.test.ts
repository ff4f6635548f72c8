import { describe, expect, it } from "vitest";
import type { SettingsVersion } from "../src/api/types";
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
