// What can be done with a filtered list of runs: keep it as a view, or act on all of its runs after a dry run.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf, tenant } from "../api/client";
import { may } from "../api/session";
import type { BulkRequest, BulkResult } from "../api/types";
import { listen } from "../live/tenant";
import { queryOf, type Filter } from "../logic/run_list";
import { dropView, readViews, saveView } from "../logic/views";
import { plural } from "../logic/words";
import { href } from "../router";
import { AskButton } from "../ui/ask";
import { CopyAs, ProblemBox } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { useLoad, useThrottled } from "../ui/hooks";

// --- saved views ---

const FIXED: ReadonlyArray<readonly [name: string, filter: Filter]> = [
  ["All", {}],
  ["Active", { status: "pending,running,waiting,paused" }],
  ["Queued", { status: "queued" }],
  ["Failed", { status: "failed,timed_out,denied" }],
  ["Succeeded", { status: "succeeded" }],
];

const COUNT_REFRESH_MS = 2_000;

/** How many runs the views of active and queued runs have. */
function useCounts(): Record<string, number> {
  const { data, reload } = useLoad(() => must(api.GET("/api/v1/admission", { params: { query: { limit: 1 } } })), []);
  const refresh = useThrottled(reload, COUNT_REFRESH_MS);
  useEffect(() => listen(refresh), []);
  return data === null ? {} : { Active: data.active_runs, Queued: data.queued_runs };
}

export function Views({ filter }: { filter: Filter }) {
  const [views, setViews] = useState(() => readViews(localStorage, tenant.value));
  const [name, setName] = useState("");
  const counts = useCounts();
  const here = queryOf(filter);
  const all = [...FIXED.map(([title, fixed]) => ({ name: title, query: queryOf(fixed) })), ...views];
  const isNew = here !== "" && !all.some((view) => view.query === here);
  const saved = views.find((view) => view.query === here);
  return (
    <div class="choices" role="group" aria-label="Views">
      {all.map((view) => (
        <a key={`${view.name} ${view.query}`} class="choice" href={href("runs") + view.query} aria-current={view.query === here ? "true" : undefined}>
          {view.name} {(counts[view.name] ?? 0) > 0 && <span class="count">{counts[view.name]?.toLocaleString("en")}</span>}
        </a>
      ))}
      {isNew && (
        <AskButton
          label="Save this view"
          needs="read"
          small
          title="Save this view"
          verb="Save"
          run={() => {
            setViews(saveView(localStorage, tenant.value, { name, query: here }));
            return Promise.resolve("The view is saved in this browser");
          }}
        >
          <label>
            Name
            <input required value={name} maxLength={40} onInput={(e) => setName(e.currentTarget.value)} />
          </label>
        </AskButton>
      )}
      {saved !== undefined && (
        <button type="button" class="small" onClick={() => setViews(dropView(localStorage, tenant.value, saved.name))}>
          Forget this view
        </button>
      )}
    </div>
  );
}

// --- bulk actions ---

type BulkAction = BulkRequest["action"];
const ACTIONS: Record<BulkAction, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", retry: "Retry" };

function filterFor(filter: Filter): BulkRequest["filter"] {
  return {
    ...(filter.status === undefined ? {} : { status: filter.status }),
    ...(filter.workflow_id === undefined ? {} : { workflow_id: filter.workflow_id }),
    ...(filter.label === undefined ? {} : { label: filter.label }),
  };
}

const NOTHING: BulkResult = { matched: 0, changed: 0, unchanged: 0, refused: [], dry_run: false, next_cursor: null };

function sum(a: BulkResult, b: BulkResult): BulkResult {
  return {
    ...b,
    matched: a.matched + b.matched,
    changed: a.changed + b.changed,
    unchanged: a.unchanged + b.unchanged,
    refused: [...a.refused, ...b.refused].slice(0, 50),
  };
}

/** All pages, each under a key of its own, so that pressing again does nothing twice. */
async function act(body: BulkRequest, key: string, onPage: (sofar: BulkResult) => void): Promise<BulkResult> {
  let total = NOTHING;
  let cursor: string | null = null;
  for (let page = 0; ; page++) {
    const asked: BulkRequest = { ...body, ...(cursor === null ? {} : { cursor }) };
    const found: BulkResult = await must(api.POST("/api/v1/runs:bulk", { params: { header: { "Idempotency-Key": `${key}-${page}` } }, body: asked }));
    total = sum(total, found);
    onPage(total);
    cursor = found.next_cursor;
    if (cursor === null) return total;
  }
}

function Told({ result }: { result: BulkResult }) {
  const found = plural(result.matched, "run");
  const text = result.dry_run
    ? `${found} would be asked. Nothing has changed yet.`
    : `${found} asked: ${result.changed} changed, ${result.unchanged} were so already, ${result.refused.length} refused.`;
  return (
    <div role="status">
      <p>{text}</p>
      {result.refused.slice(0, 3).map((refused) => (
        <p class="fault" key={refused.run_id}>
          {refused.run_id}: {refused.detail}
        </p>
      ))}
    </div>
  );
}

function BulkDialog({ filter, onClose }: { filter: Filter; onClose: () => void }) {
  const [action, setAction] = useState<BulkAction>(filter.status?.startsWith("failed") === true ? "retry" : "cancel");
  const [dry, setDry] = useState<BulkResult | null>(null);
  const [done, setDone] = useState<BulkResult | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const key = useRef(newKey());
  const body = (dry_run: boolean): BulkRequest => ({ action, filter: filterFor(filter), dry_run });
  const start = (dryRun: boolean): void => {
    setBusy(true);
    const onPage = dryRun ? setDry : setDone;
    // A dry run changes nothing and shall look again each time: its key is a new one.
    void act(body(dryRun), dryRun ? newKey() : key.current, onPage)
      .then(
        () => setFailure(null),
        (e: unknown) => setFailure(e as Failure),
      )
      .finally(() => setBusy(false));
  };
  const choose = (chosen: BulkAction): void => {
    setAction(chosen);
    setDry(null);
    setDone(null);
    key.current = newKey();
  };
  const where = Object.entries(filterFor(filter)).map(([name, value]) => `${name} ${String(value)}`);
  return (
    <Dialog title="Act on many runs" onClose={onClose}>
      <p>{where.length === 0 ? "All runs of this tenant" : `Runs with ${where.join(", ")}`}, of any age. A dry run first says what would happen.</p>
      <label>
        Action
        <select value={action} onChange={(e) => choose(e.currentTarget.value as BulkAction)}>
          {Object.entries(ACTIONS).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {dry !== null && done === null && <Told result={dry} />}
      {done !== null && <Told result={done} />}
      {failure !== null && <ProblemBox failure={failure} />}
      <div class="actions">
        <button type="button" class={dry === null ? "primary" : ""} disabled={busy} onClick={() => start(true)}>
          Dry run
        </button>
        <button
          type="button"
          class={action === "cancel" ? "danger" : "primary"}
          disabled={busy || dry === null || dry.matched === 0 || done !== null}
          onClick={() => start(false)}
        >
          {ACTIONS[action]} {dry === null ? "" : plural(dry.matched, "run")}
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
        <CopyAs request={requestOf("POST", "runs:bulk", body(dry === null))} />
      </div>
    </Dialog>
  );
}

export function BulkButton({ filter, onDone }: { filter: Filter; onDone: () => void }) {
  const [asked, setAsked] = useState(false);
  if (!may("run")) return null;
  const searches = filter.q !== undefined;
  return (
    <>
      <button type="button" disabled={searches} title={searches ? "Not for a search: filter by status, workflow or label" : ""} onClick={() => setAsked(true)}>
        Act on many…
      </button>
      {asked && (
        <BulkDialog
          filter={filter}
          onClose={() => {
            setAsked(false);
            onDone();
          }}
        />
      )}
    </>
  );
}
