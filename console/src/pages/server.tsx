// The server itself: is it ready, is its store sound, what is published to the bus.
import { useState } from "preact/hooks";
import { api, Failure, must, requestOf } from "../api/client";
import { may } from "../api/session";
import type { DoctorReport, ParkedMessage } from "../api/types";
import { duration } from "../logic/time";
import { plural } from "../logic/words";
import { AskButton } from "../ui/ask";
import { Card, CopyAs, Facts, Json, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { usePolled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const REFRESH_MS = 5_000;

async function readAll() {
  const [ready, health, outbox] = await Promise.all([
    must(api.GET("/readyz", {})),
    must(api.GET("/healthz", {})),
    may("rule_server") ? must(api.GET("/api/v1/outbox", { params: { query: { limit: 20 } } })) : null,
  ]);
  return { ready, health, outbox };
}

function Doctor() {
  const [report, setReport] = useState<DoctorReport | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const check = (): void => {
    setBusy(true);
    void must(api.GET("/api/v1/doctor", {}))
      .then(
        (found) => {
          setFailure(null);
          setReport(found);
        },
        (e: unknown) => setFailure(e as Failure),
      )
      .finally(() => setBusy(false));
  };
  return (
    <Card
      title="Doctor"
      aside={
        <>
          <button type="button" class="primary" disabled={busy} onClick={check}>
            {busy ? "Checking…" : "Check the store"}
          </button>
          <CopyAs request={requestOf("GET", "doctor")} />
        </>
      }
    >
      <p class="faint">
        Recounts slots, queues and indexes from the runs themselves and compares. It changes nothing, and takes as long as the store is large.
      </p>
      {failure !== null && <ProblemBox failure={failure} />}
      {report !== null && (
        <Table
          label="Checks"
          items={report.checks}
          keyOf={(c) => c.name}
          columns={[
            { title: "Check", cell: (c) => <strong>{c.name}</strong> },
            { title: "Result", cell: (c) => <span class={`status ${c.ok ? "good" : "bad"}`}>{c.ok ? "sound" : plural(c.found.length, "difference")}</span> },
            { title: "Checked", cell: (c) => c.checked, numeric: true },
            { title: "What", cell: (c) => c.detail },
            { title: "Found", cell: (c) => (c.found.length === 0 ? "–" : <Json value={c.found} label={`Found by ${c.name}`} />) },
          ]}
        />
      )}
    </Card>
  );
}

/** Messages that the bus has refused too often. */
function Parked({ messages, onDone }: { messages: readonly ParkedMessage[]; onDone: () => void }) {
  return (
    <Table
      label="Parked messages"
      items={messages}
      keyOf={(m) => m.message_id}
      columns={[
        { title: "Message", cell: (m) => <strong>{m.type}</strong> },
        { title: "Tenant", cell: (m) => m.tenant },
        { title: "Reason", cell: (m) => <span class="error-text">{m.reason}</span> },
        { title: "Attempts", cell: (m) => m.attempts, numeric: true },
        { title: "Parked", cell: (m) => <Time at={m.parked_at} /> },
        {
          title: "Actions",
          cell: (m) => (
            <AskButton
              label="Send again"
              needs="rule_server"
              small
              title="Send this message again?"
              verb="Send again"
              request={requestOf("POST", `outbox/${encodeURIComponent(m.message_id)}/retry`, {})}
              run={(key) => retryParked(m.message_id, key).then(() => "The message will be sent under the same id")}
              onDone={onDone}
            >
              <p>It keeps its id, so that receivers which have it already can tell.</p>
            </AskButton>
          ),
        },
      ]}
    />
  );
}

const retryParked = (id: string, key: string): Promise<unknown> =>
  must(api.POST("/api/v1/outbox/{message_id}/retry", { params: { path: { message_id: id }, header: { "Idempotency-Key": key } }, body: {} }));

export function ServerPage() {
  useTitle("Server");
  const { data, failure, reload } = usePolled(readAll, REFRESH_MS);
  return (
    <>
      <PageHead title="Server" lead="One process with one store. Readiness, health of the store, and what leaves it.">
        <CopyAs request={{ method: "GET", url: new URL("../readyz", document.baseURI).href }} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {data !== null && (
        <Facts
          of={{
            State: <span class={`status ${data.ready.status === "ready" ? "good" : "bad"}`}>{data.ready.status.replace("_", " ")}</span>,
            Version: data.health.version,
            Store: `${data.ready.dependencies.store.engine}: ${data.ready.dependencies.store.status} ${data.ready.dependencies.store.detail}`,
            Gate: `${data.ready.dependencies.gate.kind}: ${data.ready.dependencies.gate.status}`,
            Bus: data.ready.dependencies.bus === undefined ? "none" : `${data.ready.dependencies.bus.kind}: ${data.ready.dependencies.bus.status}`,
          }}
        />
      )}
      {data?.outbox?.bus.kind != null && (
        <Card title="Outbox" aside={<CopyAs request={requestOf("GET", "outbox")} />}>
          <p>
            {plural(data.outbox.depth, "message")} to be published, the oldest for {duration(data.outbox.lag_ms)}. {plural(data.outbox.items.length, "message")}{" "}
            parked.
          </p>
          {data.outbox.items.length > 0 && <Parked messages={data.outbox.items} onDone={reload} />}
        </Card>
      )}
      {may("rule_server") && <Doctor />}
    </>
  );
}
