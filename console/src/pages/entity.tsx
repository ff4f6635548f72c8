// One entity: its state, what waits for it, and everything that has happened to it, live.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, apiUrl, must, requestOf, tenantHeaders } from "../api/client";
import type { Entity, EntityEvent } from "../api/types";
import { follow } from "../live/stream";
import { errorText } from "../logic/error";
import { Card, CopyAs, Facts, FullTime, Json, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { useLoad, usePages, useThrottled, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";
import { SignalButton } from "../ui/signal";
import { Table } from "../ui/table";

const EVENTS_MAX = 2_000;
const REFRESH_MS = 200;
const FAMILY: Record<Entity["status"], string> = { idle: "idle", waiting: "waiting", running: "active", retrying: "bad", blocked: "bad", finished: "good" };

const withEntity = (type: string, id: string) => ({ path: { type, id } });
const pathOf = (type: string, id: string): string => `entities/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;

function useEntity(type: string, id: string) {
  const loaded = useLoad(() => must(api.GET("/api/v1/entities/{type}/{id}", { params: withEntity(type, id) })), [type, id]);
  const [events, setEvents] = useState<EntityEvent[]>([]);
  const seq = useRef(0);
  const refresh = useThrottled(loaded.reload, REFRESH_MS);
  useEffect(
    () =>
      follow({
        url: apiUrl(`${pathOf(type, id)}/events`),
        headers: tenantHeaders(),
        after: null,
        onOpen: refresh,
        onMessages: (messages) => {
          const fresh = messages.map((m) => JSON.parse(m.data) as EntityEvent).filter((event) => event.seq > seq.current);
          seq.current = fresh.at(-1)?.seq ?? seq.current;
          if (fresh.length > 0) setEvents((old) => [...fresh.reverse(), ...old].slice(0, EVENTS_MAX));
          refresh();
        },
      }),
    [type, id],
  );
  return { ...loaded, events };
}

function Call({ entity }: { entity: Entity }) {
  const { call } = entity;
  if (call === null) return null;
  return (
    <Card title="The call of its handler">
      <Facts
        of={{
          Kind: call.kind,
          State: call.state,
          Attempt: call.attempt,
          Worker: call.worker_id ?? "none yet",
          "Next try": call.retry_at === null ? undefined : <FullTime at={call.retry_at} />,
        }}
      />
      {call.error != null && <p class="fault">{errorText(call.error) || JSON.stringify(call.error)}</p>}
    </Card>
  );
}

function Inbox({ type, id, version }: { type: string; id: string; version: number }) {
  const list = usePages(
    (cursor) =>
      must(
        api.GET("/api/v1/entities/{type}/{id}/inbox", {
          params: { ...withEntity(type, id), query: { limit: 20, ...(cursor === undefined ? {} : { cursor }) } },
        }),
      ),
    [type, id, version],
  );
  return (
    <Card title="Inbox" aside={<CopyAs request={requestOf("GET", `${pathOf(type, id)}/inbox`)} />}>
      <PagedTable
        label="Inbox"
        list={list}
        keyOf={(s) => s.seq}
        columns={[
          { title: "Signal", cell: (s) => s.seq, numeric: true },
          { title: "Name", cell: (s) => <strong>{s.name}</strong> },
          { title: "Kind", cell: (s) => (s.update ? "update" : "signal") },
          { title: "Arrived", cell: (s) => <Time at={s.at} /> },
          {
            title: "Payload",
            cell: (s) => (
              <details>
                <summary>Show</summary>
                <Json value={s.payload} label={`Payload of signal ${s.seq}`} />
              </details>
            ),
          },
        ]}
        empty={<p class="faint">Nothing waits. A signal stays here until a call of the handler has applied it.</p>}
      />
    </Card>
  );
}

function Generations({ type, id }: { type: string; id: string }) {
  const list = usePages(
    (cursor) =>
      must(
        api.GET("/api/v1/entities/{type}/{id}/generations", {
          params: { ...withEntity(type, id), query: { limit: 20, ...(cursor === undefined ? {} : { cursor }) } },
        }),
      ),
    [type, id],
  );
  return (
    <Card title="Generations" aside={<CopyAs request={requestOf("GET", `${pathOf(type, id)}/generations`)} />}>
      <PagedTable
        label="Generations"
        list={list}
        keyOf={(g) => g.generation}
        columns={[
          { title: "Generation", cell: (g) => <strong>{g.generation}</strong> },
          { title: "Because", cell: (g) => g.reason.replace("_", " ") },
          { title: "From event", cell: (g) => g.first_event, numeric: true },
          { title: "Type version", cell: (g) => g.type_version, numeric: true },
          { title: "Began", cell: (g) => <Time at={g.at} /> },
          {
            title: "State then",
            cell: (g) => (
              <details>
                <summary>Show</summary>
                <Json value={g.state} label={`State of generation ${g.generation}`} />
              </details>
            ),
          },
        ]}
        empty={<p class="faint">None are kept.</p>}
      />
    </Card>
  );
}

function Timers({ entity }: { entity: Entity }) {
  return (
    <Card title="Timers">
      {entity.timers.length === 0 ? (
        <p class="faint">None. A handler sets one to be called again later.</p>
      ) : (
        <Table
          label="Timers"
          items={entity.timers}
          keyOf={(t) => t.name}
          columns={[
            { title: "Timer", cell: (t) => <strong>{t.name}</strong> },
            { title: "Due", cell: (t) => <FullTime at={t.due_at} /> },
            { title: "Payload", cell: (t) => <code class="hash">{JSON.stringify(t.payload)}</code> },
          ]}
        />
      )}
    </Card>
  );
}

/** Of the signal, timer or update that an event is about. */
const nameIn = (data: unknown): string => (typeof data === "object" && data !== null && "name" in data && typeof data.name === "string" ? data.name : "");

function EventList({ events }: { events: readonly EntityEvent[] }) {
  return (
    <ol class="events">
      {events.slice(0, 200).map((event) => (
        <li key={event.seq}>
          <details>
            <summary>
              <span class="faint">{event.seq}</span> <strong>{event.type}</strong> {nameIn(event.data)} <Time at={event.at} />
            </summary>
            <Json value={event.data} label={`Data of event ${event.seq}`} />
          </details>
        </li>
      ))}
    </ol>
  );
}

export function EntityPage({ type, id }: { type: string; id: string }) {
  useTitle(`${type} ${id}`);
  const { data: entity, failure, reload, events } = useEntity(type, id);
  if (entity === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={reload} />;
  return (
    <>
      <PageHead
        title={
          <>
            {type} <code>{id}</code>
          </>
        }
      >
        <span class={`status ${FAMILY[entity.status]}`}>{entity.status}</span>
        <SignalButton
          title={`Send a signal to ${type} ${id}`}
          requestFor={(signal) => requestOf("POST", `${pathOf(type, id)}/signals`, signal)}
          send={(body, key) =>
            must(api.POST("/api/v1/entities/{type}/{id}/signals", { params: { ...withEntity(type, id), header: { "Idempotency-Key": key } }, body }))
          }
          onDone={reload}
        />
        <CopyAs request={requestOf("GET", pathOf(type, id))} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      <Facts
        of={{
          Inbox: `${entity.inbox} waiting`,
          Signals: `${entity.consumed_seq} of ${entity.last_seq} applied`,
          "State version": entity.version,
          Generation: entity.generation,
          "Type version": `${entity.type_version}${entity.migrating_to === null ? "" : ` → ${entity.migrating_to}`}`,
          "Dedup keys": `${entity.dedup.keys} of ${entity.dedup.max_keys}`,
          "Last active": <FullTime at={entity.active_at} />,
        }}
      />
      <Call entity={entity} />
      <div class="columns">
        <Card title="State">
          <Json value={entity.state} label="State" />
        </Card>
        <Timers entity={entity} />
      </div>
      <Inbox type={type} id={id} version={entity.last_seq + entity.consumed_seq} />
      <Card title={`Events (${entity.events})`} aside={<CopyAs request={requestOf("GET", `${pathOf(type, id)}/events`)} />}>
        <EventList events={events} />
      </Card>
      <Generations type={type} id={id} />
    </>
  );
}
