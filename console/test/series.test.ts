import { describe, expect, test } from "vitest";
import type { StatsMinute } from "../src/api/types";
import { failuresOf, minutesPerPoint, seriesOf } from "../src/logic/series";

const NONE = { count: 0, p50_ms: null, p95_ms: null, p99_ms: null };

function minute(at: string, starts: number, failed = 0): StatsMinute {
  const outcomes = { succeeded: 0, failed, denied: 0, cancelled: 0, timed_out: 0 };
  return { at, starts, outcomes, replays: 0, mismatches: 0, refused: 0, waits: NONE };
}

describe("the series of a chart", () => {
  test("has a point for every minute, also for those that the server leaves out", () => {
    const minutes = [minute("2026-11-16T12:01:00.000Z", 3, 1), minute("2026-11-16T12:03:00.000Z", 5)];
    const series = seriesOf({ from: "2026-11-16T12:00:00.000Z", to: "2026-11-16T12:03:31.500Z", minutes }, [(f) => f.starts, failuresOf]);
    const begin = Date.parse("2026-11-16T12:00:00.000Z") / 1_000;
    expect(series).toEqual([
      [begin, begin + 60, begin + 120, begin + 180],
      [0, 3, 0, 5],
      [0, 1, 0, 0],
    ]);
  });

  test("takes minutes of a day together, as what there was per minute", () => {
    expect([60, 360, 361, 1_440, 1_441].map(minutesPerPoint)).toEqual([1, 1, 2, 4, 5]);
    const minutes = [minute("2026-11-16T00:00:00.000Z", 4), minute("2026-11-16T00:03:00.000Z", 4), minute("2026-11-16T23:59:00.000Z", 8)];
    const [times, starts] = seriesOf({ from: "2026-11-16T00:00:00.000Z", to: "2026-11-16T23:59:59.000Z", minutes }, [(f) => f.starts]);
    expect(times).toHaveLength(360);
    expect([starts?.[0], starts?.[1], starts?.[359]]).toEqual([2, 0, 2]);
  });

  test("ignores what lies outside", () => {
    const minutes = [minute("2026-11-16T11:00:00.000Z", 1), minute("2026-11-16T14:00:00.000Z", 1)];
    expect(seriesOf({ from: "2026-11-16T12:00:00.000Z", to: "2026-11-16T12:00:01.000Z", minutes }, [(f) => f.starts])[1]).toEqual([0]);
  });
});
