import { describe, expect, test } from "vitest";
import { absolute, duration, elapsed, relative } from "../src/logic/time";

const NOW = Date.parse("2026-11-16T12:00:00.000Z");

describe("duration", () => {
  test.each([
    [0, "0 ms"],
    [-5, "0 ms"],
    [850, "850 ms"],
    [1_000, "1.0 s"],
    [9_940, "9.9 s"],
    [59_400, "59 s"],
    [59_999, "1 min"],
    [185_000, "3 min 5 s"],
    [3_600_000, "1 h"],
    [3_605_000, "1 h"],
    [187_200_000, "2 d 4 h"],
    [Number.NaN, ""],
  ])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));
});

describe("relative", () => {
  test.each([
    ["2026-11-16T11:59:59.500Z", "just now"],
    ["2026-11-16T11:59:48.000Z", "12 s ago"],
    ["2026-11-16T11:00:01.000Z", "59 min ago"],
    ["2026-11-14T11:00:00.000Z", "2 d ago"],
    ["2026-11-16T12:03:00.000Z", "in 3 min"],
    ["nonsense", "nonsense"],
  ])("%s is %s", (at, text) => expect(relative(at, NOW)).toBe(text));
});

describe("absolute", () => {
  test("names the zone that it is in", () => {
    expect(absolute("2026-11-16T12:08:15.476Z", 0)).toBe("2026-11-16 12:08:15.476 UTC");
    expect(absolute("2026-11-16T23:30:00.000Z", 60)).toBe("2026-11-17 00:30:00.000 +01:00");
    expect(absolute("2026-01-01T00:10:00.000Z", -210)).toBe("2025-12-31 20:40:00.000 -03:30");
  });
  test("leaves alone what is no time", () => expect(absolute("soon", 0)).toBe("soon"));
});

describe("elapsed", () => {
  test("goes on until there is an end", () => {
    expect(elapsed("2026-11-16T11:59:00.000Z", null, NOW)).toBe("1 min");
    expect(elapsed("2026-11-16T11:59:00.000Z", "2026-11-16T11:59:00.020Z", NOW)).toBe("20 ms");
  });
  test("is empty before the beginning", () => expect(elapsed(null, null, NOW)).toBe(""));
});
