// Slots and limits of the tenant: how full they are, what waits, and a change that can be undone.
import { useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf, ROOT, tenant } from "../api/client";
import { may } from "../api/session";
import type { AtLimit, ConcurrencyLimit, RunSummary, SettingsVersion, Tenant, TenantSettings, Why } from "../api/types";
import { percentile } from "../logic/histogram";
import { samplesOf } from "../logic/metrics";
import { changesOf } from "../logic/settings";
import { duration, elapsed } from "../logic/time";
import { href } from "../router";
import { Allowed } from "../ui/allowed";
import { Card, CopyAs, Empty, Loading, Meter, PageHead, ProblemBox, RunLink, Time } from "../ui/bits";
import { now, useLoad, usePolled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const REFRESH_MS = 3_000;
const AT_LIMIT: AtLimit[] = ["reject", "queue", "cancel_oldest", "coalesce"];
const AT_LIMIT_WORDS: Record<AtLimit, string> = {
  reject: "Reject the start with 429",
  queue: "Queue the run",
  cancel_oldest: "Cancel the oldest run",
  coalesce: "Answer with the run that is active",
};

const mine = () => ({ path: { tenant_id: tenant.value } });
const settingsPath = (): string => `tenants/${tenant.value}`;

interface Waiting {
  run: RunSummary;
  why: Why;
}

/** Why the first few queued runs wait. */
async function readWaiting(): Promise<Waiting[]> {
  const queued = await must(api.GET("/api/v1/runs", { params: { query: { status: "queued", limit: 8 } } }));
  return Promise.all(
    queued.items.map(async (run) => ({ run, why: await must(api.GET("/api/v1/runs/{run_id}/why", { params: { path: { run_id: run.id } } })) })),
  );
}

/** null where the server does not show its metrics to this caller. */
async function readWaits(): Promise<{ admission: string; queue: string } | null> {
  const response = await fetch(`${ROOT}metrics`).catch(() => null);
  if (response?.ok !== true) return null;
  const samples = samplesOf(await response.text());
  const words = (name: string): string => {
    const found = [0.5, 0.95, 0.99].map((share) => percentile(samples, name, { tenant: tenant.value }, share));
    if (found.includes(null)) return "none yet";
    return found.map((s) => (s === Infinity ? "longer" : `≤ ${duration((s ?? 0) * 1_000)}`)).join(" · ");
  };
  return { admission: words("pawl_admission_wait_seconds"), queue: words("pawl_queue_wait_seconds") };
}

async function readAll() {
  const [about, history, waiting, waits] = await Promise.all([
    must(api.GET("/api/v1/tenants/{tenant_id}", { params: mine() })),
    must(api.GET("/api/v1/tenants/{tenant_id}/settings", { params: { ...mine(), query: { limit: 20 } } })),
    readWaiting(),
    readWaits(),
  ]);
  return { about, history: history.items, waiting, waits };
}

// --- limits ---

interface Draft {
  max_concurrent_runs: string;
  max_queued_runs: string;
  at_limit: AtLimit;
  per_second: string;
  burst: string;
}

const numeral = (value: number | null | undefined): string => (value == null ? "" : String(value));

function draftOf(about: Tenant): Draft {
  return {
    max_concurrent_runs: numeral(about.max_concurrent_runs),
    max_queued_runs: numeral(about.max_queued_runs),
    at_limit: about.at_limit,
    per_second: numeral(about.rate_limit?.per_second),
    burst: numeral(about.rate_limit?.burst),
  };
}

const numberOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));

function settingsOf(draft: Draft): TenantSettings {
  const perSecond = numberOf(draft.per_second);
  return {
    max_concurrent_runs: numberOf(draft.max_concurrent_runs),
    max_queued_runs: numberOf(draft.max_queued_runs),
    at_limit: draft.at_limit,
    rate_limit: perSecond === null ? null : { per_second: perSecond, burst: numberOf(draft.burst) ?? perSecond },
  };
}

const FIELDS: ReadonlyArray<readonly [name: Exclude<keyof Draft, "at_limit">, title: string, help: string]> = [
  ["max_concurrent_runs", "Active runs at once", "Empty: no limit"],
  ["max_queued_runs", "Runs in the queue", "Empty: no limit"],
  ["per_second", "Starts per second", "Empty: no limit"],
  ["burst", "Starts at once", "Empty: as many as per second"],
];

function LimitForm({ about, onDone }: { about: Tenant; onDone: () => void }) {
  const [draft, setDraft] = useState<Draft>(draftOf(about));
  const [failure, setFailure] = useState<Failure | null>(null);
  const [undo, setUndo] = useState<number | null>(null); // the version before the last change
  const put = (change: Partial<Draft>): void => setDraft((old) => ({ ...old, ...change }));
  const settle = (next: Tenant, before: number | null): void => {
    setFailure(null);
    setUndo(before);
    setDraft(draftOf(next));
    onDone();
  };
  const save = (event: Event): void => {
    event.preventDefault();
    const params = { ...mine(), header: { "Idempotency-Key": newKey() } };
    must(api.PUT("/api/v1/tenants/{tenant_id}", { params, body: settingsOf(draft) })).then(
      (next) => settle(next, about.settings_version),
      (e: unknown) => setFailure(e as Failure),
    );
  };
  const restore = (version: number): void =>
    void rollback(version).then(
      (next) => settle(next, null),
      (e: unknown) => setFailure(e as Failure),
    );
  return (
    <Card title="Limits" aside={<CopyAs request={requestOf("PUT", settingsPath(), settingsOf(draft))} />}>
      <form onSubmit={save}>
        <div class="form-grid">
          {FIELDS.map(([name, title, help]) => (
            <div class="field" key={name}>
              <label for={`limit-${name}`}>{title}</label>
              <input
                id={`limit-${name}`}
                type="number"
                min={0}
                value={draft[name]}
                placeholder="no limit"
                aria-describedby={`limit-${name}-help`}
                onInput={(e) => put({ [name]: e.currentTarget.value })}
              />
              <span id={`limit-${name}-help`} class="faint">
                {help}
              </span>
            </div>
          ))}
          <div class="field">
            <label for="limit-at">At the limit</label>
            <select id="limit-at" value={draft.at_limit} onChange={(e) => put({ at_limit: e.currentTarget.value as AtLimit })}>
              {AT_LIMIT.map((word) => (
                <option key={word} value={word}>
                  {AT_LIMIT_WORDS[word]}
                </option>
              ))}
            </select>
            <span class="faint">For a start that does not fit</span>
          </div>
        </div>
        {failure !== null && <ProblemBox failure={failure} />}
        <Allowed to="rule_server" what="changing limits">
          <div class="actions">
            <button class="primary">Save</button>
            <span class="faint">Takes effect at once, for queued runs too. Nothing that is active is stopped.</span>
          </div>
        </Allowed>
      </form>
      {undo !== null && (
        <p class="outcome" role="status">
          The limits have changed.{" "}
          <button type="button" class="small" onClick={() => restore(undo)}>
            Undo
          </button>
        </p>
      )}
    </Card>
  );
}

const rollback = (version: number): Promise<Tenant> =>
  must(api.POST("/api/v1/tenants/{tenant_id}/rollback", { params: { ...mine(), header: { "Idempotency-Key": newKey() } }, body: { version } }));

function History({ versions, onDone }: { versions: SettingsVersion[]; onDone: () => void }) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const restore = (version: number): void =>
    void rollback(version).then(
      () => onDone(),
      (e: unknown) => setFailure(e as Failure),
    );
  const before = (version: number): SettingsVersion | undefined => versions.find((v) => v.version === version - 1);
  return (
    <Card title="History of the settings" aside={<CopyAs request={requestOf("GET", `${settingsPath()}/settings`)} />}>
      {failure !== null && <ProblemBox failure={failure} />}
      {versions.length === 0 ? (
        <p class="faint">The settings have never been changed. Every change will be here, and can be restored.</p>
      ) : (
        <Table
          label="Versions of the settings"
          items={versions}
          keyOf={(v) => v.version}
          columns={[
            { title: "Version", cell: (v) => <strong>{v.version}</strong> },
            {
              title: "Changed",
              cell: (v) => {
                const changes = changesOf(v.settings, before(v.version)?.settings);
                if (changes.length === 0) return <span class="faint">the first version that is kept, or nothing</span>;
                return changes.map((c) => (
                  <span class="change" key={c.name}>
                    {c.name} <del>{c.from}</del> → <ins>{c.to}</ins>
                  </span>
                ));
              },
            },
            { title: "By", cell: (v) => v.actor },
            { title: "When", cell: (v) => <Time at={v.at} /> },
            {
              title: "Restore",
              cell: (v) =>
                v.current ? (
                  <span class="status good">current</span>
                ) : (
                  <button
                    type="button"
                    class="small"
                    disabled={!may("rule_server")}
                    onClick={() => restore(v.version)}
                    aria-label={`Restore version ${v.version}`}
                  >
                    Restore
                  </button>
                ),
            },
          ]}
        />
      )}
    </Card>
  );
}

// --- what waits, and the limits of workflows ---

function WaitingRuns({ waiting }: { waiting: Waiting[] }) {
  return (
    <Card title="Waiting for a slot" aside={<CopyAs request={requestOf("GET", "runs?status=queued")} />}>
      {waiting.length === 0 ? (
        <p class="faint">No run waits. A start that does not fit is queued when the policy at the limit is “queue”, and shown here with what it waits for.</p>
      ) : (
        <Table
          label="Queued runs"
          items={waiting}
          keyOf={({ run }) => run.id}
          columns={[
            { title: "Run", cell: ({ run }) => <RunLink id={run.id} /> },
            { title: "Workflow", cell: ({ run }) => run.workflow_id },
            { title: "Why", cell: ({ why }) => why.summary },
            { title: "Waits for", cell: ({ run }) => elapsed(run.created_at, null, now.value) },
          ]}
        />
      )}
    </Card>
  );
}

interface WorkflowLimit {
  workflow: string;
  limit: ConcurrencyLimit;
}

const HEADS = 50; // workflows whose definitions are read

async function readWorkflowLimits(): Promise<WorkflowLimit[]> {
  const { items } = await must(api.GET("/api/v1/workflows", { params: { query: { limit: HEADS } } }));
  const read = items
    .filter((head) => !head.archived)
    .map(async (head) => {
      const { definition } = await must(api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: head.id } } }));
      const limits = definition.concurrency ?? [];
      return (Array.isArray(limits) ? limits : [limits]).map((limit) => ({ workflow: head.id, limit }));
    });
  return (await Promise.all(read)).flat();
}

function WorkflowLimits() {
  const { data } = useLoad(readWorkflowLimits, []);
  return (
    <Card title="Limits of workflows and keys">
      {data?.length === 0 && (
        <p class="faint">
          A workflow can have limits of its own, also one for each value in its input: <code>{'"concurrency": {"key": "input.customer", "limit": 1}'}</code>
        </p>
      )}
      {data !== null && data.length > 0 && (
        <Table
          label="Limits of workflows"
          items={data}
          keyOf={({ workflow, limit }) => `${workflow} ${limit.key ?? ""}`}
          columns={[
            { title: "Workflow", cell: ({ workflow }) => <a href={href("workflows", workflow)}>{workflow}</a> },
            { title: "For each", cell: ({ limit }) => (limit.key === undefined ? "the whole workflow" : <code>{limit.key}</code>) },
            { title: "Runs", cell: ({ limit }) => limit.limit, numeric: true },
            { title: "At the limit", cell: ({ limit }) => limit.at_limit ?? "as the tenant" },
          ]}
        />
      )}
    </Card>
  );
}

export function Admission() {
  useTitle("Admission");
  const { data, failure, reload } = usePolled(readAll, REFRESH_MS);
  return (
    <>
      <PageHead title="Admission" lead={`How many runs of ${tenant.value} may be active, and what happens to the others.`}>
        <CopyAs request={requestOf("GET", settingsPath())} />
      </PageHead>
      {failure?.problem.status === 404 ? (
        <Empty title="This tenant has no settings yet">
          <p>It comes into being with its first run or setting.</p>
        </Empty>
      ) : (
        failure !== null && <ProblemBox failure={failure} retry={reload} />
      )}
      {data === null && failure === null && <Loading />}
      {data !== null && (
        <>
          <div class="tiles">
            <Meter title="Active runs" value={data.about.active_runs} limit={data.about.max_concurrent_runs} />
            <Meter title="Queued runs" value={data.about.queued_runs} limit={data.about.max_queued_runs} />
            {data.waits !== null && (
              <>
                <div class="tile">
                  <span class="tile-title">A start was decided within</span>
                  <span class="tile-text">{data.waits.admission}</span>
                  <span class="faint">50% · 95% · 99% of starts</span>
                </div>
                <div class="tile">
                  <span class="tile-title">A queued run waited</span>
                  <span class="tile-text">{data.waits.queue}</span>
                  <span class="faint">50% · 95% · 99% of queued runs</span>
                </div>
              </>
            )}
          </div>
          <LimitForm about={data.about} onDone={reload} />
          <WaitingRuns waiting={data.waiting} />
          <WorkflowLimits />
          <History versions={data.history} onDone={reload} />
        </>
      )}
    </>
  );
}
