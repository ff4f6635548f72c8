// All runs, newest first, live. Reads a page at a time as one scrolls, so a million runs are no different from ten.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, curlOf, Failure, must, requestOf, tenant } from "../api/client";
import type { RunSummary } from "../api/types";
import { listen } from "../live/tenant";
import { errorText } from "../logic/error";
import { applyEvents, filterOf, mergeFirstPage, queryOf, type Filter } from "../logic/run_list";
import { RUN_STATUSES, worded } from "../logic/status";
import { elapsed } from "../logic/time";
import { go, href, query } from "../router";
import { Command, CopyAs, Empty, Loading, PageHead, ProblemBox, Short, Status, Time } from "../ui/bits";
import { now, useThrottled, useTitle, useWide } from "../ui/hooks";
import { TextFilter } from "../ui/text_filter";
import { VirtualList } from "../ui/virtual";
import { BulkButton, Views } from "./runs_tools";

const PAGE = 100;
const REFRESH_MS = 300;
const SEARCH_REFRESH_MS = 3_000; // a search looks at many runs
const EMPTY_PAGES_MAX = 20; // then the search goes on when it is told to

interface List {
  runs: RunSummary[];
  cursor: string | null; // of the next page; null: this is all
}

/** Without what is not asked for. */
function askedOf(filter: Filter) {
  return {
    ...(filter.q === undefined ? {} : { q: filter.q }),
    ...(filter.status === undefined ? {} : { status: filter.status }),
    ...(filter.workflow_id === undefined ? {} : { workflow_id: filter.workflow_id }),
    ...(filter.label === undefined ? {} : { label: filter.label }),
  };
}

function pathOf(filter: Filter): string {
  const asked = new URLSearchParams(askedOf(filter)).toString();
  return asked === "" ? "runs" : `runs?${asked}`;
}

async function readPage(filter: Filter, cursor: string | null): Promise<List> {
  const query = { limit: PAGE, ...askedOf(filter), ...(cursor === null ? {} : { cursor }) };
  const page = await must(api.GET("/api/v1/runs", { params: { query } }));
  return { runs: page.items, cursor: page.next_cursor };
}

/** The list, and what keeps it up to date. */
function useRuns(filter: Filter) {
  const [list, setList] = useState<List | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [searching, setSearching] = useState(false);
  const reading = useRef(false);
  const turn = useRef(0); // of the filter: what was asked for another one is dropped
  const read = async (cursor: string | null): Promise<List | null> => {
    const mine = turn.current;
    try {
      const page = await readPage(filter, cursor);
      if (mine !== turn.current) return null;
      setFailure(null);
      return page;
    } catch (e) {
      if (mine === turn.current) setFailure(e as Failure);
      return null;
    }
  };
  /** The server looks at a bounded number of runs for one page: a filter that rarely fits gets empty ones, which are passed over. */
  const readOn = async (cursor: string | null): Promise<void> => {
    const mine = turn.current;
    setSearching(true);
    let at = cursor;
    for (let pages = 0; pages < EMPTY_PAGES_MAX; pages++) {
      const page = await read(at);
      if (page === null) break;
      const isFirst = at === null;
      setList((old) => ({ runs: mergeFirstPage(isFirst ? [] : (old?.runs ?? []), page.runs), cursor: page.cursor }));
      if (page.runs.length > 0 || page.cursor === null) break;
      at = page.cursor;
    }
    if (mine === turn.current) setSearching(false);
  };
  /** From the newest on; what is shown stays until that is read. */
  const start = (): void => {
    turn.current++;
    reading.current = false;
    void readOn(null);
  };
  const refresh = useThrottled(
    () => {
      void read(null).then((page) => page !== null && setList((old) => (old === null ? page : { ...old, runs: mergeFirstPage(old.runs, page.runs) })));
    },
    filter.q === undefined ? REFRESH_MS : SEARCH_REFRESH_MS,
  );
  const more = (): void => {
    const cursor = list?.cursor ?? null;
    if (cursor === null || reading.current) return;
    reading.current = true;
    void readOn(cursor).finally(() => (reading.current = false));
  };
  const latest = useRef(start);
  latest.current = start;
  useEffect(() => {
    setList(null);
    latest.current();
    return () => {
      turn.current++;
    };
  }, [filter.q, filter.status, filter.workflow_id, filter.label]);
  useEffect(
    () =>
      listen((events) => {
        if (events === "reset") return latest.current();
        setList((old) => (old === null ? old : { ...old, runs: applyEvents(old.runs, events) }));
        refresh();
      }),
    [],
  );
  return { list, failure, searching, more, reload: start };
}

function Filters({ filter }: { filter: Filter }) {
  const put = (change: Partial<Filter>): void => go(href("runs") + queryOf({ ...filter, ...change }), true);
  return (
    <form class="filters" onSubmit={(e) => e.preventDefault()}>
      <label class="search">
        Search
        <TextFilter
          data-filter
          type="search"
          value={filter.q ?? ""}
          maxLength={200}
          placeholder="id, idempotency key, label or error"
          enter={(text) => put({ q: text || undefined })}
        />
      </label>
      <label>
        Status
        <select value={filter.status ?? ""} onChange={(e) => put({ status: e.currentTarget.value || undefined })}>
          <option value="">All</option>
          {filter.status?.includes(",") === true && <option value={filter.status}>{filter.status.split(",").map(worded).join(", ")}</option>}
          {RUN_STATUSES.map((status) => (
            <option key={status} value={status}>
              {worded(status)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Workflow
        <TextFilter value={filter.workflow_id ?? ""} placeholder="any" enter={(text) => put({ workflow_id: text || undefined })} />
      </label>
      <label>
        Label
        <TextFilter value={filter.label ?? ""} placeholder="name:value" enter={(text) => put({ label: text || undefined })} />
      </label>
    </form>
  );
}

function Row({ run }: { run: RunSummary }) {
  const labels = Object.entries(run.labels);
  const error = errorText(run.error);
  return (
    <>
      <span role="cell" class="c-status">
        <Status of={run.status} />
      </span>
      <span role="cell" class="c-run">
        <a href={href("runs", run.id)} data-entry>
          <Short id={run.id} />
        </a>
      </span>
      <span role="cell" class="c-workflow" title={run.workflow_id}>
        {run.workflow_id} <span class="faint">v{run.workflow_version}</span>
      </span>
      <span role="cell" class="c-labels">
        {labels.map(([name, value]) => (
          <span class="label" key={name}>
            {name}:{value}
          </span>
        ))}
        <span class="error-text" title={error}>
          {error}
        </span>
      </span>
      <span role="cell" class="c-created">
        <Time at={run.created_at} />
      </span>
      <span role="cell" class="c-took">
        {elapsed(run.started_at, run.finished_at, now.value)}
      </span>
    </>
  );
}

const Head = () => (
  <div role="rowgroup">
    <div role="row" class="virtual-head">
      {["Status", "Run", "Workflow", "Labels and error", "Created", "Took"].map((name) => (
        <span role="columnheader" key={name}>
          {name}
        </span>
      ))}
    </div>
  </div>
);

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No run fits this filter">
        <p>
          <a href={href("runs")}>Show all runs</a>
        </p>
      </Empty>
    );
  return (
    <Empty title="No runs yet">
      <p>
        A run is one execution of a <a href={href("workflows")}>workflow</a>. Start one there with a form, or in a terminal. The header makes a retry safe: the
        same key never starts a second run.
      </p>
      <Command text={`${curlOf("POST", "workflows/hello/runs", { input: { name: "Ada" } })} -H 'Idempotency-Key: order-1'`} />
    </Empty>
  );
}

function Older({ searching, more }: { searching: boolean; more: () => void }) {
  if (searching) return <p role="status">Searching older runs…</p>;
  return (
    <Empty title="No newer run fits">
      <p>There are older runs that have not been looked at.</p>
      <button type="button" onClick={more}>
        Search older runs
      </button>
    </Empty>
  );
}

export function Runs() {
  useTitle("Runs");
  const filter = filterOf(query.value);
  const { list, failure, searching, more, reload } = useRuns(filter);
  const wide = useWide(760);
  const filtered = queryOf(filter) !== "";
  const count = list?.runs.length ?? 0;
  return (
    <>
      <PageHead title="Runs">
        {list !== null && (
          <span class="faint">
            {count}
            {list.cursor !== null && "+"} shown for {tenant.value}
          </span>
        )}
        <CopyAs request={requestOf("GET", pathOf(filter))} />
        <BulkButton filter={filter} onDone={reload} />
      </PageHead>
      <Views key={tenant.value} filter={filter} />
      <Filters filter={filter} />
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {list === null && failure === null && <Loading />}
      {list !== null && count === 0 && (list.cursor === null ? <NoRuns filtered={filtered} /> : <Older searching={searching} more={more} />)}
      {count > 0 && (
        <VirtualList
          items={list?.runs ?? []}
          rowHeight={wide ? 40 : 64}
          label="Runs"
          head={<Head />}
          row={(run) => <Row run={run} />}
          keyOf={(run) => run.id}
          onEnd={more}
        />
      )}
    </>
  );
}
