// All events of the tenant while they happen.
import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl, requestOf, tenantHeaders } from "../api/client";
import { follow, type LinkState } from "../live/stream";
import { plural } from "../logic/words";
import { go, href, query } from "../router";
import { CopyAs, Empty, Json, PageHead, RunLink, Time } from "../ui/bits";

import { useTitle } from "../ui/hooks";

const KEPT_MAX = 500;

interface Seen {
  id: string;
  type: string;
  time: string;
  subject: string;
  data: unknown;
}

interface Envelope {
  type: string;
  time: string;
  subject?: string;
  data?: { run_id?: string; step?: string; workflow_id?: string };
}

function seenOf(id: string, text: string): Seen {
  const event = JSON.parse(text) as Envelope;
  const place = [event.data?.workflow_id, event.data?.step].filter(Boolean).join(" · ");
  return { id, type: event.type, time: event.time, subject: place || (event.subject ?? ""), data: event.data };
}

function useEvents(types: string, paused: boolean) {
  const [events, setEvents] = useState<Seen[]>([]);
  const [state, setState] = useState<LinkState>("connecting");
  const [held, setHeld] = useState(0); // while paused
  const keep = useRef(paused);
  const waiting = useRef<Seen[]>([]);
  keep.current = paused;
  const show = (more: Seen[]): void => setEvents((old) => [...more.reverse(), ...old].slice(0, KEPT_MAX));
  useEffect(() => {
    setEvents([]);
    return follow({
      url: apiUrl(types === "" ? "events" : `events?types=${encodeURIComponent(types)}`),
      headers: tenantHeaders(),
      after: null,
      onState: setState,
      onMessages: (messages) => {
        const fresh = messages.filter((m) => m.event !== "reset").map((m) => seenOf(m.id, m.data));
        if (keep.current) {
          waiting.current = [...waiting.current, ...fresh].slice(-KEPT_MAX);
          setHeld(waiting.current.length);
        } else show(fresh);
      },
    });
  }, [types]);
  useEffect(() => {
    if (paused) return;
    show(waiting.current);
    waiting.current = [];
    setHeld(0);
  }, [paused]);
  return { events, state, held };
}

const familyOf = (type: string): string =>
  /failed|timed_out|denied|blocked|rejected|expired/.test(type)
    ? "bad"
    : /succeeded|approved|completed/.test(type)
      ? "good"
      : /approval|queued|paused/.test(type)
        ? "waiting"
        : "idle";

function EventRow({ event }: { event: Seen }) {
  const run = (event.data as { run_id?: string } | undefined)?.run_id;
  return (
    <li>
      <details>
        <summary>
          <Time at={event.time} /> <span class={`status ${familyOf(event.type)}`}>{event.type}</span> <span>{event.subject}</span>
        </summary>
        {run !== undefined && (
          <p>
            Run <RunLink id={run} />
          </p>
        )}
        <Json value={event.data} label={`Data of ${event.type}`} />
      </details>
    </li>
  );
}

const CHOICES: ReadonlyArray<readonly [types: string, title: string]> = [
  ["", "All"],
  ["run.*", "Runs"],
  ["job.*", "Jobs"],
  ["approval.*", "Approvals"],
  ["entity.*", "Entities"],
  ["run.failed,run.timed_out,job.failed", "Failures"],
];

export function Events() {
  useTitle("Events");
  const types = query.value.get("types") ?? "";
  const [paused, setPaused] = useState(false);
  const { events, state, held } = useEvents(types, paused);
  const path = types === "" ? "events" : `events?types=${types}`;
  return (
    <>
      <PageHead title="Events" lead="What happens to this tenant, as it happens. Each event has one id, for ever.">
        <span class={`status ${state === "live" ? "good" : "waiting"}`} role="status">
          {state === "live" ? "listening" : "connecting"}
        </span>
        <button type="button" onClick={() => setPaused((old) => !old)} aria-pressed={paused}>
          {paused ? `Go on (${plural(held, "new event")})` : "Pause"}
        </button>
        <CopyAs request={requestOf("GET", path)} />
      </PageHead>
      <div class="choices" role="group" aria-label="Which events">
        {CHOICES.map(([chosen, title]) => (
          <button
            key={title}
            type="button"
            aria-pressed={types === chosen}
            onClick={() => go(`${href("events")}${chosen === "" ? "" : `?types=${encodeURIComponent(chosen)}`}`, true)}
          >
            {title}
          </button>
        ))}
      </div>
      {events.length === 0 ? (
        <Empty title="Nothing has happened since you opened this page">
          <p>
            Start a run or decide an approval, and its events appear here. Programs read the same stream; see <code>docs/streams.md</code>.
          </p>
        </Empty>
      ) : (
        <ol class="events boxed">
          {events.map((event) => (
            <EventRow key={event.id} event={event} />
          ))}
        </ol>
      )}
    </>
  );
}
