// How the tenant and the server are doing: now, and in the last day.
import { useEffect } from "preact/hooks";
import { api, curlOf, must, requestOf, tenant } from "../api/client";
import type { Stats } from "../api/types";
import { listen } from "../live/tenant";
import { errorText } from "../logic/error";
import { failuresOf, seriesOf } from "../logic/series";
import { elapsed } from "../logic/time";
import { go, href, query } from "../router";
import { Card, Command, CopyAs, Empty, Loading, PageHead, ProblemBox, RunLink, Time } from "../ui/bits";
import { Chart, type Line } from "../ui/chart";
import { now, useLoad, usePolled, useThrottled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";
import { FirstSteps } from "./first_steps";

const REFRESH_MS = 1_000;
const PAGE = 100;
const FAILED = "failed,timed_out,denied";

// --- what happened ---

const RANGES: ReadonlyArray<readonly [minutes: number, title: string, refreshMs: number]> = [
  [1_440, "24 hours", 30_000],
  [360, "6 hours", 15_000],
  [60, "1 hour", 5_000],
];

const RUN_LINES: readonly Line[] = [
  { label: "started", color: "--active" },
  { label: "succeeded", color: "--good" },
  { label: "failed", color: "--bad" },
];

const START_LINES: readonly Line[] = [
  { label: "replays", color: "--good" },
  { label: "mismatches", color: "--waiting" },
  { label: "refused (429)", color: "--bad" },
];

function History({ stats, title }: { stats: Stats; title: string }) {
  const { total } = stats;
  return (
    <>
      <div class="tiles">
        <Tile title="Runs started" value={total.starts} note="at once or queued" to={href("runs")} />
        <Tile title="Succeeded" value={total.outcomes.succeeded} note={`${total.outcomes.cancelled} cancelled`} to={`${href("runs")}?status=succeeded`} />
        <Tile
          title="Failed"
          value={failuresOf(total)}
          note={`${total.outcomes.timed_out} timed out, ${total.outcomes.denied} denied`}
          to={`${href("runs")}?status=${FAILED}`}
          tone={failuresOf(total) > 0 ? "bad" : undefined}
        />
        <Tile title="Starts replayed" value={total.replays} note="same key, same answer" to={href("keys")} />
        <Tile title="Key mismatches" value={total.mismatches} note="same key, other request" tone={total.mismatches > 0 ? "waiting" : undefined} />
        <Tile title="Refused at a limit" value={total.refused} note="429" to={href("admission")} tone={total.refused > 0 ? "waiting" : undefined} />
      </div>
      <div class="columns">
        <Card title="Runs per minute">
          <Chart
            data={seriesOf(stats, [(f) => f.starts, (f) => f.outcomes.succeeded, failuresOf])}
            lines={RUN_LINES}
            label={`Runs started, succeeded and failed per minute in the last ${title}`}
          />
        </Card>
        <Card title="Repeated and refused starts per minute">
          <Chart
            data={seriesOf(stats, [(f) => f.replays, (f) => f.mismatches, (f) => f.refused])}
            lines={START_LINES}
            label={`Replays, mismatches and refusals per minute in the last ${title}`}
          />
        </Card>
      </div>
    </>
  );
}

function LastDay() {
  const asked = Number(query.value.get("minutes"));
  const [minutes, title, refreshMs] = RANGES.find(([range]) => range === asked) ?? RANGES[0] ?? [1_440, "24 hours", 30_000];
  const { data, failure, reload } = usePolled(() => must(api.GET("/api/v1/stats", { params: { query: { minutes } } })), refreshMs, [minutes]);
  return (
    <section aria-label={`The last ${title}`}>
      <div class="section-head">
        <h2>The last {title}</h2>
        <div class="choices" role="group" aria-label="How far back">
          {RANGES.map(([range, name]) => (
            <button key={range} type="button" aria-pressed={range === minutes} onClick={() => go(`${href()}?minutes=${range}`, true)}>
              {name}
            </button>
          ))}
        </div>
        <CopyAs request={requestOf("GET", `stats?minutes=${minutes}`)} />
      </div>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {data !== null && <History stats={data} title={title} />}
    </section>
  );
}

// --- what is the case now ---

interface TileProps {
  title: string;
  value: string | number;
  note?: string;
  to?: string;
  tone?: "bad" | "good" | "waiting" | undefined;
}

function Tile({ title, value, note, to, tone }: TileProps) {
  const inner = (
    <>
      <span class="tile-title">{title}</span>
      <span class={`tile-value ${tone ?? ""}`}>{value}</span>
      <span class="faint">{note ?? "\u00a0"}</span>
    </>
  );
  return to === undefined ? (
    <div class="tile">{inner}</div>
  ) : (
    <a class="tile" href={to} data-entry>
      {inner}
    </a>
  );
}

async function readNow() {
  const [admission, approvals, queues, failed, ready, workflows] = await Promise.all([
    must(api.GET("/api/v1/admission", { params: { query: { limit: 1 } } })),
    must(api.GET("/api/v1/approvals", { params: { query: { status: "pending", order: "oldest", limit: PAGE } } })),
    must(api.GET("/api/v1/queues", { params: { query: { without_workers: "true", limit: PAGE } } })),
    must(api.GET("/api/v1/runs", { params: { query: { status: FAILED, limit: 8 } } })),
    must(api.GET("/readyz", {})),
    must(api.GET("/api/v1/workflows", { params: { query: { limit: 1 } } })),
  ]);
  return { admission, approvals, queues, failed, ready, hasWorkflows: workflows.items.length > 0 };
}

type Now = Awaited<ReturnType<typeof readNow>>;

const counted = (page: { items: unknown[]; next_cursor: string | null }): string => `${page.items.length}${page.next_cursor === null ? "" : "+"}`;

function OldestRun({ admission }: { admission: Now["admission"] }) {
  const oldest = admission.oldest_waiting;
  if (oldest === null) return <Tile title="Oldest waiting run" value="none" note="no run waits for a slot" to={href("admission")} />;
  return (
    <Tile
      title="Oldest waiting run"
      value={elapsed(oldest.created_at, null, now.value)}
      note={oldest.workflow_id}
      to={href("runs", oldest.run_id)}
      tone="waiting"
    />
  );
}

function Tiles({ all }: { all: Now }) {
  const { admission, approvals, queues, ready } = all;
  const oldest = approvals.items[0];
  const limit = admission.max_concurrent_runs;
  const names = queues.items.map((queue) => queue.queue).join(", ");
  return (
    <div class="tiles">
      <Tile
        title="Active runs"
        value={admission.active_runs}
        note={limit === null ? "no limit" : `of ${limit} slots`}
        to={`${href("runs")}?status=pending,running,waiting,paused`}
      />
      <Tile title="Queued runs" value={admission.queued_runs} note="wait for a slot" to={`${href("runs")}?status=queued`} />
      <OldestRun admission={admission} />
      <Tile
        title="Approvals waiting"
        value={counted(approvals)}
        note={oldest === undefined ? "nobody waits" : `oldest for ${elapsed(oldest.requested_at, null, now.value)}`}
        to={href("approvals")}
        tone={oldest === undefined ? undefined : "waiting"}
      />
      <Tile
        title="Queues without workers"
        value={counted(queues)}
        note={names.slice(0, 60) || "none with jobs"}
        to={href("queues")}
        tone={names === "" ? undefined : "bad"}
      />
      <Tile
        title="Server"
        value={ready.status === "ready" ? "Ready" : "Not ready"}
        note={`store: ${ready.dependencies.store.status}`}
        to={href("server")}
        tone={ready.status === "ready" ? "good" : "bad"}
      />
    </div>
  );
}

function Failed({ all }: { all: Now }) {
  if (all.failed.items.length === 0)
    return (
      <Empty title="No run has failed">
        <p>Failed runs appear here with their error, and can be retried from where they stopped.</p>
        <Command text={curlOf("GET", "runs?status=failed")} />
      </Empty>
    );
  return (
    <Table
      label="Failed runs"
      items={all.failed.items}
      keyOf={(run) => run.id}
      columns={[
        { title: "Run", cell: (run) => <RunLink id={run.id} /> },
        { title: "Workflow", cell: (run) => run.workflow_id },
        { title: "Error", cell: (run) => <span class="error-text">{errorText(run.error).slice(0, 160)}</span> },
        { title: "Ended", cell: (run) => <Time at={run.finished_at} /> },
      ]}
    />
  );
}

export function Overview() {
  useTitle("Overview");
  const { data: all, failure, reload } = useLoad(readNow, []);
  const refresh = useThrottled(reload, REFRESH_MS);
  useEffect(() => listen(refresh), []);
  return (
    <>
      <PageHead title="Overview" lead={`How ${tenant.value} is doing.`}>
        <CopyAs request={requestOf("GET", "admission")} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {all === null && failure === null && <Loading />}
      {all?.hasWorkflows === false && <FirstSteps />}
      {all !== null && <Tiles all={all} />}
      <LastDay />
      {all !== null && (
        <Card title="Latest failed runs" aside={<CopyAs request={requestOf("GET", `runs?status=${FAILED}&limit=8`)} />}>
          <Failed all={all} />
        </Card>
      )}
    </>
  );
}
