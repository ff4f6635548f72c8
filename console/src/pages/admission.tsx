// Slots and limits of the tenant: how full they are, what waits, and a change that can be undone.
import { useEffect, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf, tenant } from "../api/client";
import type { AdmissionState, AtLimit, LimitUse, RunSummary, SettingsVersion, Tenant, TenantSettings, Why } from "../api/types";
import type { Request } from "../logic/curl";
import { changesOf } from "../logic/settings";
import { duration, elapsed } from "../logic/time";
import { plural } from "../logic/words";
import { href } from "../router";
import { Allowed } from "../ui/allowed";
import { AskButton } from "../ui/ask";
import { Card, CopyAs, Empty, Loading, Meter, PageHead, ProblemBox, RunLink, Time } from "../ui/bits";
import { now, usePolled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const REFRESH_MS = 3_000;
const PAGE = 50;
const QUEUED_RUNS_MAX = 1_000_000; // without a setting
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

async function readAll() {
  const [about, history, waiting, state] = await Promise.all([
    must(api.GET("/api/v1/tenants/{tenant_id}", { params: mine() })),
    must(api.GET("/api/v1/tenants/{tenant_id}/settings", { params: { ...mine(), query: { limit: 20 } } })),
    readWaiting(),
    must(api.GET("/api/v1/admission", { params: { query: { limit: PAGE } } })),
  ]);
  return { about, history: history.items, waiting, state };
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
  ["max_queued_runs", "Runs in the queue", "Empty: 1,000,000"],
  ["per_second", "Starts per second", "Empty: no limit"],
  ["burst", "Starts at once", "Empty: as many as per second"],
];

function LimitForm({ about, onDone }: { about: Tenant; onDone: () => void }) {
  const [draft, setDraft] = useState<Draft>(draftOf(about));
  const [failure, setFailure] = useState<Failure | null>(null);
  const [undo, setUndo] = useState<number | null>(null); // the version before the last change
  useEffect(() => setDraft(draftOf(about)), [about.settings_version]); // changed here, or by someone else
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
    void rollback(version, newKey()).then(
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
        <div class="outcome" role="status">
          The limits have changed.{" "}
          <button type="button" class="small" onClick={() => restore(undo)}>
            Undo
          </button>{" "}
          <CopyAs label="Copy undo as" request={rollbackRequest(undo)} />
        </div>
      )}
    </Card>
  );
}

const rollback = (version: number, key: string): Promise<Tenant> =>
  must(api.POST("/api/v1/tenants/{tenant_id}/rollback", { params: { ...mine(), header: { "Idempotency-Key": key } }, body: { version } }));

const rollbackRequest = (version: number): Request => requestOf("POST", `${settingsPath()}/rollback`, { version });

function History({ versions, onDone }: { versions: SettingsVersion[]; onDone: () => void }) {
  const before = (version: number): SettingsVersion | undefined => versions.find((v) => v.version === version - 1);
  return (
    <Card title="History of the settings" aside={<CopyAs request={requestOf("GET", `${settingsPath()}/settings`)} />}>
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
                  <AskButton
                    label="Restore"
                    needs="rule_server"
                    small
                    title={`Restore version ${v.version}?`}
                    verb="Restore"
                    request={rollbackRequest(v.version)}
                    run={(key) => rollback(v.version, key).then(() => `The settings of version ${v.version} are in force again`)}
                    onDone={onDone}
                  >
                    <p>The settings become as they were then, as a new version: this can be undone too.</p>
                  </AskButton>
                ),
            },
          ]}
        />
      )}
    </Card>
  );
}

// --- what waits, and the limits of workflows and keys ---

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

const EXAMPLE = '"concurrency": {"key": "input.customer", "limit": 1}';

/** Slots of workflows and of values in their inputs, while any run holds or waits for one. */
function LimitUses({ state }: { state: AdmissionState }) {
  return (
    <Card title="Limits of workflows and keys in use" aside={<CopyAs request={requestOf("GET", "admission")} />}>
      {state.items.length === 0 ? (
        <p class="faint">
          None. A workflow can have limits of its own, also one for each value in its input: <code>{EXAMPLE}</code>
        </p>
      ) : (
        <Table
          label="Limits of workflows and keys"
          items={state.items}
          keyOf={(use) => JSON.stringify([use.workflow_id, use.path, use.key])}
          columns={[
            { title: "Workflow", cell: (use) => <a href={href("workflows", use.workflow_id)}>{use.workflow_id}</a> },
            { title: "For", cell: (use) => <LimitedBy use={use} /> },
            {
              title: "Slots",
              cell: (use) => <span class={isFull(use) ? "fault" : ""}>{`${use.active_runs} of ${use.limit ?? "no limit now"}`}</span>,
              numeric: true,
            },
            { title: "Queued", cell: (use) => use.queued_runs, numeric: true },
          ]}
        />
      )}
      {state.more && <p class="faint">These have the most runs; there are more.</p>}
    </Card>
  );
}

function LimitedBy({ use }: { use: LimitUse }) {
  if (use.path === null) return <>the whole workflow</>;
  return (
    <code class="hash">
      {use.path} = {use.key === "" ? "(none)" : use.key}
    </code>
  );
}

const isFull = (use: LimitUse): boolean => use.limit !== null && use.active_runs >= use.limit;

/** 50, 95 and 99 of a hundred runs that had to wait, waited no longer than this. */
function Waits({ waits }: { waits: AdmissionState["waits"] }) {
  const words = [waits.p50_ms, waits.p95_ms, waits.p99_ms].map((ms) => (ms === null ? "–" : `≤ ${duration(ms)}`)).join(" · ");
  return (
    <div class="tile">
      <span class="tile-title">Queued runs waited, in the last hour</span>
      <span class="tile-text">{waits.count === 0 ? "none had to wait" : words}</span>
      <span class="faint">{waits.count === 0 ? "\u00a0" : `50% · 95% · 99% of ${plural(waits.count, "run")}`}</span>
    </div>
  );
}

function OldestWaiting({ oldest }: { oldest: AdmissionState["oldest_waiting"] }) {
  return (
    <div class="tile">
      <span class="tile-title">Oldest waiting run</span>
      <span class="tile-text">{oldest === null ? "none waits" : elapsed(oldest.created_at, null, now.value)}</span>
      <span class="faint">
        {oldest === null ? (
          "\u00a0"
        ) : (
          <>
            {oldest.workflow_id} <RunLink id={oldest.run_id} />
          </>
        )}
      </span>
    </div>
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
            <Meter title="Active runs" value={data.state.active_runs} limit={data.state.max_concurrent_runs} />
            <Meter title="Queued runs" value={data.state.queued_runs} limit={data.state.max_queued_runs ?? QUEUED_RUNS_MAX} />
            <OldestWaiting oldest={data.state.oldest_waiting} />
            <Waits waits={data.state.waits} />
          </div>
          <LimitForm about={data.about} onDone={reload} />
          <WaitingRuns waiting={data.waiting} />
          <LimitUses state={data.state} />
          <History versions={data.history} onDone={reload} />
        </>
      )}
    </>
  );
}
