// The few figures that the overview takes from the server's metrics.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Prometheus text, without its comments. */
export function samplesOf(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const found = LINE.exec(line);
    if (found === null) return [];
    const labels = Object.fromEntries([...(found[2] ?? "").matchAll(LABEL)].map((m) => [m[1] ?? "", m[2] ?? ""]));
    return [{ name: found[1] ?? "", labels, value: Number(found[3]) }];
  });
}

export function sumOf(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number {
  const fits = (s: Sample): boolean => s.name === name && Object.entries(labels).every(([k, v]) => s.labels[k] === v);
  return samples.filter(fits).reduce((sum, s) => sum + s.value, 0);
}
