// Times as people read them. All functions are pure: the present is an argument.

const UNITS: ReadonlyArray<readonly [name: string, ms: number]> = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** "850 ms", "12 s", "3 min 5 s", "2 d 4 h": at most two units. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 10_000) return `${(whole / 1_000).toFixed(1)} s`;
  let rest = Math.round(whole / 1_000) * 1_000;
  const parts: string[] = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** "just now", "12 s ago", "in 3 min": the largest unit only. */
export function relative(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  const size = Math.abs(ms);
  if (Number.isNaN(size)) return at;
  if (size < 1_000) return "just now";
  const [name, unit] = UNITS.find(([, unit]) => size >= unit) ?? (["s", 1_000] as const);
  const count = Math.floor(size / unit);
  return ms > 0 ? `in ${count} ${name}` : `${count} ${name} ago`;
}

const two = (n: number): string => String(n).padStart(2, "0");

/** "2026-11-16 12:08:15.476" in the reader's time zone, with the zone in the end: "+01:00" or "UTC". */
export function absolute(at: string, offsetMinutes?: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  const east = offsetMinutes ?? -time.getTimezoneOffset();
  const local = new Date(time.getTime() + east * 60_000);
  const date = `${local.getUTCFullYear()}-${two(local.getUTCMonth() + 1)}-${two(local.getUTCDate())}`;
  const clock = `${two(local.getUTCHours())}:${two(local.getUTCMinutes())}:${two(local.getUTCSeconds())}`;
  const ms = String(local.getUTCMilliseconds()).padStart(3, "0");
  return `${date} ${clock}.${ms} ${zone(east)}`;
}

function zone(east: number): string {
  if (east === 0) return "UTC";
  const size = Math.abs(east);
  return `${east < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** How long something took, or has taken until now; empty before it began. */
export function elapsed(from: string | null | undefined, to: string | null | undefined, now: number): string {
  if (from == null) return "";
  const end = to == null ? now : Date.parse(to);
  return duration(end - Date.parse(from));
}
