// A time series of the server, which leaves out quiet minutes, as lines for a chart.
import type { Stats, StatsFigures } from "../api/types";

const MINUTE_S = 60;

/** Lines of a chart have at most this many points; more minutes are taken together. */
const POINTS_MAX = 360;

export type Figure = (figures: StatsFigures) => number;

/** Runs that ended in any other way than they should. */
export const failuresOf: Figure = ({ outcomes }) => outcomes.failed + outcomes.timed_out + outcomes.denied;

/** How many minutes each point stands for. */
export const minutesPerPoint = (minutes: number): number => Math.ceil(minutes / POINTS_MAX);

/** Seconds, then for each figure what there was per minute at each of them; quiet minutes are zero. */
export function seriesOf(stats: Pick<Stats, "from" | "to" | "minutes">, figures: readonly Figure[]): number[][] {
  const first = Math.floor(Date.parse(stats.from) / 1_000 / MINUTE_S);
  const last = Math.floor(Date.parse(stats.to) / 1_000 / MINUTE_S);
  const size = minutesPerPoint(last - first + 1);
  const points = Math.max(1, Math.ceil((last - first + 1) / size));
  const times = Array.from({ length: points }, (_, i) => (first + i * size) * MINUTE_S);
  const lines = figures.map(() => new Array<number>(points).fill(0));
  for (const minute of stats.minutes) {
    const point = Math.floor((Math.floor(Date.parse(minute.at) / 1_000 / MINUTE_S) - first) / size);
    figures.forEach((figure, k) => {
      const line = lines[k];
      if (line?.[point] !== undefined) line[point] += figure(minute) / size;
    });
  }
  return [times, ...lines];
}
