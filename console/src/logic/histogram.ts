// Percentiles of a histogram as Prometheus has it: counts of all observations up to each bound.
import type { Sample } from "./metrics";

/** The upper bound below which `share` of the observations lie; null without any, Infinity in the last bucket. */
export function percentile(samples: readonly Sample[], name: string, labels: Record<string, string>, share: number): number | null {
  const counts = new Map<number, number>();
  for (const sample of samples) {
    const bound = sample.labels.le;
    if (sample.name !== `${name}_bucket` || bound === undefined) continue;
    if (!Object.entries(labels).every(([label, value]) => sample.labels[label] === value)) continue;
    const at = bound === "+Inf" ? Infinity : Number(bound);
    counts.set(at, (counts.get(at) ?? 0) + sample.value);
  }
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  const total = counts.get(Infinity) ?? 0;
  if (total === 0) return null;
  return bounds.find((bound) => (counts.get(bound) ?? 0) >= share * total) ?? Infinity;
}
