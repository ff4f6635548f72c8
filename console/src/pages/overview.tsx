// How the tenant and the server are doing, from what the API tells today.
import { useEffect, useState } from "preact/hooks";
import { api, curlOf, must, requestOf, ROOT, tenant } from "../api/client";
import { listen } from "../live/tenant";
import { errorText } from "../logic/error";
import { figuresOf, samplesOf, type Figures } from "../logic/metrics";
import { elapsed } from "../logic/time";
import { href } from "../router";
import { Card, Command, CopyAs, Empty, Loading, PageHead, ProblemBox, RunLink, Time } from "../ui/bits";
import { Chart, type Line } from "../ui/chart";
import { now, useLoad, useThrottled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const SAMPLE_MS = 5_000;
const SAMPLES_MAX = 720; // an hour
const REFRESH_MS = 1_000;

const LINES: readonly Line[] = [
  { label: "starts/s", color: "--active" },
  { label: "replays/s", color: "--good" },
  { label: "refused/s", color: "--bad" },
];

/** Figures since this page was opened; the server keeps no history yet. */
function useFigures(): Figures[] {
  const [figures, setFigures] = useState<Figures[]>([]);
  useEffect(() => {
    const sample = async (): Promise<void> => {
      if (document.visibilityState !== "visible") return;
      const response = await fetch(`${ROOT}metrics`).catch(() => null);
      if (response?.ok !== true) return;
      const next = figuresOf(samplesOf(await response.text()), tenant.value, Date.now());
      setFigures((old) => [...old, next].slice(-SAMPLES_MAX));
    };
    void sample();
    const timer = setInterval(() => void sample(), SAMPLE_MS);
    return () => clearInterval(timer);
  }, []);
  return figures;
}

function ratesOf(figures: readonly Figures[]): number[][] {
  const rates: number[][] = [[], [], [], []];
  figures.forEach((next, i) => {
    const old = figures[i - 1];
    if (old === undefined) return;
    const seconds = (next.at - old.at) / 1_000;
    const values = [next.at / 1_000, ...(["admitted", "replays", "refused"] as const).map((name) => Math.max(0, next[name] - old[name]) / seconds)];
    values.forEach((value, k) => rates[k]?.push(value));
  });
  return rates;
}

interface TileProps {
  title: string;
  value: string;
  note?: string;
  to?: string;
  tone?: "bad" | "good" | "waiting";
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

const PAGE = 100;

async function readAll() {
  const headers = { params: { query: { limit: PAGE } } };
  const [about, approvals, queues, failed, ready] = await Promise.all([
    must(api.GET("/api/v1/tenants/{tenant_id}", { params: { path: { tenant_id: tenant.value } } })).catch(() => null),
    must(api.GET("/api/v1/approvals", { params: { query: { status: "pending", limit: PAGE } } })),
    must(api.GET("/api/v1/queues", headers)),
    must(api.GET("/api/v1/runs", { params: { query: { status: "failed", limit: 8 } } })),
    must(api.GET("/readyz", {})),
  ]);
  return { about, approvals, queues, failed, ready };
}

type All = Awaited<ReturnType<typeof readAll>>;

function Tiles({ all, last }: { all: All; last: Figures | undefined }) {
  const pending = all.approvals.items;
  const oldest = pending.map((item) => item.requested_at).sort()[0];
  const stuck = all.queues.items.filter((queue) => queue.ready > 0 && queue.workers === 0);
  const limit = all.about?.max_concurrent_runs;
  return (
    <div class="tiles">
      <Tile
        title="Active runs"
        value={String(all.about?.active_runs ?? 0)}
        note={limit == null ? "no limit" : `of ${limit} slots`}
        to={`${href("runs")}?status=running`}
      />
      <Tile title="Queued runs" value={String(all.about?.queued_runs ?? 0)} to={`${href("runs")}?status=queued`} />
      <Tile
        title="Approvals waiting"
        value={`${pending.length}${all.approvals.next_cursor === null ? "" : "+"}`}
        note={oldest === undefined ? "nobody waits" : `oldest for ${elapsed(oldest, null, now.value)}`}
        to={href("approvals")}
        {...(pending.length > 0 ? { tone: "waiting" as const } : {})}
      />
      <Tile
        title="Queues without workers"
        value={String(stuck.length)}
        note={
          stuck
            .map((queue) => queue.queue)
            .join(", ")
            .slice(0, 60) || "none with jobs"
        }
        to={href("queues")}
        {...(stuck.length > 0 ? { tone: "bad" as const } : {})}
      />
      <Tile title="Starts replayed" value={String(last?.replays ?? "–")} note="same key, same answer" to={href("keys")} />
      <Tile title="Key mismatches" value={String(last?.mismatches ?? "–")} note="same key, other request" />
      <Tile title="Refused at a limit" value={String(last?.refused ?? "–")} note="429 since the server started" />
      <Tile
        title="Server"
        value={all.ready.status === "ready" ? "Ready" : "Not ready"}
        note={`store: ${all.ready.dependencies.store.status}`}
        tone={all.ready.status === "ready" ? "good" : "bad"}
      />
    </div>
  );
}

function Failed({ all }: { all: All }) {
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
  const { data: all, failure, reload } = useLoad(readAll, []);
  const refresh = useThrottled(reload, REFRESH_MS);
  useEffect(() => listen(refresh), []);
  const figures = useFigures();
  return (
    <>
      <PageHead title="Overview" lead={`How ${tenant.value} is doing.`}>
        <CopyAs request={requestOf("GET", `tenants/${tenant.value}`)} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {all === null && failure === null && <Loading />}
      {all !== null && <Tiles all={all} last={figures.at(-1)} />}
      {figures.length > 2 && (
        <Card title="Since you opened this page">
          <Chart data={ratesOf(figures)} lines={LINES} label="Starts, replays and refusals per second since this page was opened" />
        </Card>
      )}
      {all !== null && (
        <Card title="Latest failed runs">
          <Failed all={all} />
        </Card>
      )}
    </>
  );
}
