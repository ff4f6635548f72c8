// One run: its graph and timeline while they happen, why it waits, and what can be done about it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, Failure, must, requestOf } from "../api/client";
import type { Run, RunEvent, Step, StepDefinition, Why } from "../api/types";
import { followRun } from "../live/run";
import { errorText } from "../logic/error";
import { isOver } from "../logic/status";
import { elapsed } from "../logic/time";
import { times } from "../logic/words";
import { go, href, query } from "../router";
import { Card, CopyAs, FullTime, Json, Loading, PageHead, ProblemBox, RunLink, Short, Status } from "../ui/bits";
import { Gantt } from "../ui/gantt";
import { Graph } from "../ui/graph";
import { now, useLoad, useThrottled, useTitle, useWide } from "../ui/hooks";
import { SignalButton } from "../ui/signal";
import { RunActions } from "./run_actions";
import { EventList } from "./run_events";
import { RelatedRuns } from "./run_related";
import { StepPanel } from "./run_step";
import { WhyCard } from "./run_why";

const EVENTS_MAX = 20_000; // of a timeline that are kept in the page
const REFRESH_MS = 120;

interface State {
  run: Run;
  why: Why | null;
}

async function readRun(id: string): Promise<State> {
  const run = await must(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } } }));
  const why = isOver(run.status) ? null : await must(api.GET("/api/v1/runs/{run_id}/why", { params: { path: { run_id: id } } }));
  return { run, why };
}

/** The members of a run that only reading it tells. */
function comesFrom(run: Run | undefined): Pick<Run, "parent" | "started_by_key"> {
  return {
    ...(run?.parent === undefined ? {} : { parent: run.parent }),
    ...(run?.started_by_key === undefined ? {} : { started_by_key: run.started_by_key }),
  };
}

/** The run and its events. Each batch of events makes the run be read again, at most once per REFRESH_MS. */
function useRun(id: string) {
  const [state, setState] = useState<State | null>(null);
  const [events, setEvents] = useState<RunEvent[]>([]);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [opened, setOpened] = useState(0); // how often the stream was opened again after the run had ended
  const over = useRef(false);
  const seq = useRef(0);
  const read = (): void =>
    void readRun(id).then(
      (next) => {
        over.current = isOver(next.run.status);
        setFailure(null);
        setState((old) => (old !== null && old.run.version > next.run.version ? old : next));
      },
      (e: unknown) => setFailure(e as Failure),
    );
  const refresh = useThrottled(read, REFRESH_MS);
  useEffect(read, [id]);
  useEffect(
    () =>
      followRun(id, seq.current, {
        onEvents: (more) => {
          const fresh = more.filter((event) => event.seq > seq.current);
          seq.current = fresh.at(-1)?.seq ?? seq.current;
          if (fresh.length > 0) setEvents((old) => [...old, ...fresh].slice(-EVENTS_MAX));
          refresh();
        },
        onState: (link) => link === "live" && refresh(),
        isOver: () => over.current,
      }),
    [id, opened],
  );
  /** After an action: its answer is the run as it now is, without where it came from. A run that goes on has a stream again. */
  const put = (run: Run): void => {
    if (over.current && !isOver(run.status)) setOpened((n) => n + 1);
    over.current = isOver(run.status);
    setState((old) => ({ run: { ...comesFrom(old?.run), ...run }, why: isOver(run.status) ? null : (old?.why ?? null) }));
    refresh();
  };
  return { state, events, failure, put, read };
}

/** What came after the first request with the key. */
function KeyNote({ of }: { of: NonNullable<Run["started_by_key"]> }) {
  const replays = of.replays === 0 ? "never repeated" : `repeated ${times(of.replays)}, answered with this run`;
  return (
    <span class="faint">
      {replays}
      {of.mismatches > 0 && <span class="fault">, {times(of.mismatches)} used for something else and refused</span>}
    </span>
  );
}

function Facts({ run }: { run: Run }) {
  const labels = Object.entries(run.labels);
  return (
    <dl class="facts">
      <div>
        <dt>Workflow</dt>
        <dd>
          <a href={href("workflows", run.workflow_id)}>{run.workflow_id}</a> v{run.workflow_version}
        </dd>
      </div>
      <div>
        <dt>Created</dt>
        <dd>
          <FullTime at={run.created_at} /> by {run.created_by}
        </dd>
      </div>
      <div>
        <dt>Took</dt>
        <dd>{elapsed(run.started_at, run.finished_at, now.value) || "not started"}</dd>
      </div>
      {run.parent !== undefined && (
        <div>
          <dt>Child of</dt>
          <dd>
            <RunLink id={run.parent.run_id} /> step {run.parent.step}
          </dd>
        </div>
      )}
      {run.started_by_key !== undefined && (
        <div>
          <dt>Started by key</dt>
          <dd>
            <a href={`${href("keys")}?key=${encodeURIComponent(run.started_by_key.key)}`}>{run.started_by_key.key}</a> <KeyNote of={run.started_by_key} />
          </dd>
        </div>
      )}
      {run.rerun_of !== undefined && (
        <div>
          <dt>Rerun of</dt>
          <dd>
            <RunLink id={run.rerun_of} />
          </dd>
        </div>
      )}
      {run.deadline_at !== undefined && (
        <div>
          <dt>Deadline</dt>
          <dd>
            <FullTime at={run.deadline_at} />
          </dd>
        </div>
      )}
      {labels.length > 0 && (
        <div>
          <dt>Labels</dt>
          <dd>
            {labels.map(([name, value]) => (
              <a class="label" key={name} href={`${href("runs")}?label=${encodeURIComponent(`${name}:${value}`)}`}>
                {name}:{value}
              </a>
            ))}
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Steps as the definition of the run's own version orders them; until it is read, as the run lists them. */
function useShapes(run: Run | null): StepDefinition[] | null {
  const { data } = useLoad(async () => {
    if (run === null) return null;
    const asked = { path: { workflow_id: run.workflow_id }, query: { version: run.workflow_version } };
    return (await must(api.GET("/api/v1/workflows/{workflow_id}", { params: asked }))).definition.steps;
  }, [run?.workflow_id, run?.workflow_version]);
  return data;
}

export function RunPage({ id }: { id: string }) {
  const { state, events, failure, put, read } = useRun(id);
  const run = state?.run ?? null;
  const shapes = useShapes(run);
  const wide = useWide(900);
  const selected = query.value.get("step");
  const states = useMemo(() => new Map<string, Step>((run?.steps ?? []).map((step) => [step.name, step])), [run]);
  useTitle(run === null ? "Run" : `${run.workflow_id} ${run.status}`);
  if (run === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={read} />;
  const step = selected === null ? undefined : states.get(selected);
  const definition = shapes?.find((s) => s.name === selected);
  return (
    <>
      <PageHead
        title={
          <>
            {run.workflow_id} <Short id={run.id} />
          </>
        }
      >
        <Status of={run.status} />
        <RunActions run={run} onDone={put} />
        {!isOver(run.status) && (
          <SignalButton
            title="Send a signal to this run"
            requestFor={(signal) => requestOf("POST", `runs/${run.id}/signals`, signal)}
            send={(body, key) =>
              must(api.POST("/api/v1/runs/{run_id}/signals", { params: { path: { run_id: run.id }, header: { "Idempotency-Key": key } }, body }))
            }
          />
        )}
        <CopyAs request={requestOf("GET", `runs/${run.id}`)} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={read} />}
      <Facts run={run} />
      {run.error != null && (
        <div class="problem">
          <strong>{errorText(run.error) || "The run has an error"}</strong>
          <details>
            <summary>The whole error</summary>
            <Json value={run.error} label="Error" />
          </details>
        </div>
      )}
      {state?.why != null && <WhyCard why={state.why} />}
      <Card title="Steps">
        {shapes === null ? (
          <Loading />
        ) : (
          <Graph
            steps={shapes}
            states={states}
            direction={wide ? "LR" : "TB"}
            selected={selected}
            onSelect={(name) => go(href("runs", id) + (selected === name ? "" : `?step=${encodeURIComponent(name)}`), true)}
          />
        )}
        {step !== undefined && <StepPanel key={step.name} run={run} step={step} definition={definition} />}
      </Card>
      <RelatedRuns run={run} />
      <Card title="Timeline">
        <Gantt events={events} begin={run.started_at ?? run.created_at} end={run.finished_at} />
      </Card>
      <div class="columns">
        <Card title="Input">
          <Json value={run.input} label="Input" />
        </Card>
        <Card title="Output">
          <Json value={run.output} label="Output" />
        </Card>
      </div>
      <Card title={`Events (${events.length})`} aside={<CopyAs request={requestOf("GET", `runs/${run.id}/events`)} />}>
        <EventList events={events} />
      </Card>
    </>
  );
}
