// The timeline of a run as the API tells it, newest first.
import { useState } from "preact/hooks";
import type { RunEvent } from "../api/types";
import { errorText } from "../logic/error";
import { Json, Time } from "../ui/bits";

const SHOWN_FIRST = 50;

/** What the events of jobs and decisions have in common. */
interface Told {
  step?: string;
  item?: number;
  attempt?: number;
  worker_id?: string;
  by?: string;
  error?: unknown;
}

function summary(event: RunEvent): string {
  if (typeof event.data !== "object" || event.data === null) return "";
  const { step, attempt, worker_id, by, error, item } = event.data as Told;
  const place = step === undefined ? "" : `${step}${item === undefined ? "" : `[${item}]`}`;
  const tries = attempt !== undefined && attempt > 0 ? `attempt ${attempt}` : "";
  return [place, tries, worker_id ?? by ?? "", errorText(error)].filter(Boolean).join(" · ");
}

export function EventList({ events }: { events: readonly RunEvent[] }) {
  const [count, setCount] = useState(SHOWN_FIRST);
  const shown = events.slice(-count).reverse();
  return (
    <>
      <ol class="events" reversed>
        {shown.map((event) => (
          <li key={event.seq}>
            <details>
              <summary>
                <span class="faint">{event.seq}</span> <strong>{event.type}</strong> <span>{summary(event)}</span> <Time at={event.at} />
              </summary>
              <Json value={event.data} label={`Data of event ${event.seq}`} />
            </details>
          </li>
        ))}
      </ol>
      {events.length > count && (
        <button type="button" onClick={() => setCount((n) => n * 4)}>
          Show more
        </button>
      )}
    </>
  );
}
