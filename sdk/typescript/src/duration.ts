/** Lengths of time, as people write them. */

/** Milliseconds, or a number with a unit: `"250ms"`, `"30s"`, `"5m"`, `"2h"`, `"7d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * A duration in milliseconds.
 *
 * @example
 * ```ts
 * console.log(toMs("1.5h")); // 5400000
 * ```
 */
export function toMs(duration: Duration): number {
  if (typeof duration === "number") return checked(duration, duration);
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration);
  const unit = UNITS[match?.[2] ?? ""];
  if (match === null || unit === undefined) throw new RangeError(`"${duration}" is not a duration such as "30s"`);
  return checked(Math.round(Number(match[1]) * unit), duration);
}

function checked(ms: number, given: Duration): number {
  if (!Number.isFinite(ms) || ms < 0) throw new RangeError(`${given} is not a duration`);
  return ms;
}
