// The timeline of a run as bars: waiting, attempts, retries, sleeps, approvals and compensation.
import type { RunEvent } from "../api/types";
import { errorText } from "../logic/error";
import { extent, ganttOf, ticks, type Row, type Span } from "../logic/gantt";
import { duration } from "../logic/time";
import { now } from "./hooks";

const KINDS: Record<Span["kind"], string> = {
  ready: "waited for a worker",
  attempt: "ran",
  retry: "waited for the next attempt",
  sleep: "slept or waited",
  approval: "waited for approval",
  suspended: "was suspended",
};

const ROWS_MAX = 200;
const LABEL_END = 0.92; // a label further right would not fit

function nameOf(row: Row): string {
  const item = row.item === null ? "" : `[${row.item}]`;
  return `${row.compensates ? "↩ " : ""}${row.step}${item}`;
}

function describe(span: Span, to: number): string {
  const attempt = span.kind === "attempt" ? ` (attempt ${span.attempt}${span.worker === undefined ? "" : `, ${span.worker}`})` : "";
  const outcome = span.outcome === null ? (span.to === null ? ", still going" : "") : `, ${span.outcome}`;
  const error = errorText(span.error);
  return `${KINDS[span.kind]}${attempt} for ${duration(to - span.from)}${outcome}${error === "" ? "" : `: ${error}`}`;
}

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(3)}%`;

export function Gantt({ events, begin, end }: { events: readonly RunEvent[]; begin: string; end: string | null }) {
  const rows = ganttOf(events);
  const shown = rows.slice(0, ROWS_MAX);
  const { from, to } = extent(rows, Date.parse(begin), end === null ? null : Date.parse(end), now.value);
  const length = to - from;
  return (
    <div class="gantt">
      <div class="gantt-axis" aria-hidden="true">
        {ticks(length, 5).map((at) => (
          <span key={at} style={{ left: percent(at, length) }}>
            {at === 0 ? "0" : at < LABEL_END * length && duration(at)}
          </span>
        ))}
      </div>
      <ul>
        {shown.map((row) => (
          <li key={row.job} class={row.compensates ? "undo" : ""}>
            <span class="gantt-name" title={nameOf(row)}>
              {nameOf(row)}
            </span>
            <span class="gantt-bars">
              {row.spans.map((span, i) => (
                <Bar key={i} span={span} from={from} length={length} end={to} />
              ))}
            </span>
          </li>
        ))}
      </ul>
      {rows.length > ROWS_MAX && <p class="faint">{rows.length - ROWS_MAX} more jobs are not drawn; the events below have them.</p>}
      <p class="legend">
        <i class="bar attempt" /> attempt <i class="bar attempt failed" /> failed <i class="bar ready" /> waiting for a worker <i class="bar retry" /> backoff{" "}
        <i class="bar approval" /> approval <i class="bar sleep" /> timer or signal · ↩ compensation
      </p>
    </div>
  );
}

function Bar({ span, from, length, end }: { span: Span; from: number; length: number; end: number }) {
  const to = span.to ?? end;
  const text = describe(span, to);
  return (
    <span
      class={`bar ${span.kind} ${span.outcome ?? ""} ${span.to === null ? "open" : ""}`}
      title={text}
      style={{ left: percent(span.from - from, length), width: percent(Math.max(0, to - span.from), length) }}
    >
      <span class="hidden">{text}. </span>
    </span>
  );
}
