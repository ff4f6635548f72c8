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

/** What has become of the starts of a tenant since the server started. */
export interface Figures {
  at: number;
  admitted: number;
  refused: number; // at a limit: 429
  replays: number;
  mismatches: number;
}

const OUTCOMES = {
  admitted: ["admitted", "queued", "coalesced", "replaced_oldest"],
  refused: ["limited", "queue_full", "rate_limited"],
  replays: ["replayed"],
  mismatches: ["mismatched"],
} as const;

export function figuresOf(samples: readonly Sample[], tenant: string, at: number): Figures {
  const count = (figure: keyof typeof OUTCOMES): number =>
    OUTCOMES[figure].reduce((sum, outcome) => sum + sumOf(samples, "pawl_admissions_total", { tenant, outcome }), 0);
  return { at, admitted: count("admitted"), refused: count("refused"), replays: count("replays"), mismatches: count("mismatches") };
}
