// One step of a run: what it got, what it gave, each attempt, and a rerun from here.
import { useRef, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf } from "../api/client";
import { may } from "../api/session";
import type { Job, Run, Step, StepDefinition } from "../api/types";
import { errorText } from "../logic/error";
import { isOver } from "../logic/status";
import { elapsed } from "../logic/time";
import { href } from "../router";
import { CopyAs, FullTime, Json, ProblemBox, RunLink, Status } from "../ui/bits";
import { now, useLoad } from "../ui/hooks";
import { Table } from "../ui/table";
import { rerun } from "./run_actions";

function Attempts({ attempts }: { attempts: Job["attempts"] }) {
  return (
    <Table
      label="Attempts"
      items={attempts.map((attempt, i) => ({ ...attempt, i }))}
      keyOf={(attempt) => attempt.i}
      columns={[
        { title: "Attempt", cell: (attempt) => attempt.attempt, numeric: true },
        { title: "Outcome", cell: (attempt) => <Status of={attempt.outcome === "lease_expired" ? "timed_out" : attempt.outcome} /> },
        { title: "Worker", cell: (attempt) => attempt.worker_id ?? "pawl" },
        { title: "Began", cell: (attempt) => <FullTime at={attempt.started_at} /> },
        { title: "Took", cell: (attempt) => elapsed(attempt.started_at, attempt.finished_at, now.value) },
        { title: "Error", cell: (attempt) => (attempt.error == null ? "–" : errorText(attempt.error) || <code>{JSON.stringify(attempt.error)}</code>) },
      ]}
    />
  );
}

function RerunFrom({ run, step }: { run: Run; step: Step }) {
  const key = useRef(newKey());
  const [failure, setFailure] = useState<Failure | null>(null);
  if (!may("run")) return null;
  const start = (): void => void rerun(run, step.name, key.current).catch((e: unknown) => setFailure(e as Failure));
  return (
    <>
      <div class="actions">
        <button type="button" onClick={start}>
          Rerun from here
        </button>
        <CopyAs request={requestOf("POST", `runs/${run.id}/rerun`, { from_step: step.name })} />
        <span class="faint">A new run; the steps before this one keep their results.</span>
      </div>
      {failure !== null && <ProblemBox failure={failure} />}
    </>
  );
}

export function StepPanel({ run, step, definition }: { run: Run; step: Step; definition: StepDefinition | undefined }) {
  const { data: job } = useLoad(async () => {
    if (step.job_id === null) return null;
    return must(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: step.job_id } } }));
  }, [step.job_id, step.status, step.attempt]);
  return (
    <section class="step" aria-label={`Step ${step.name}`}>
      <h3>
        {step.name} <span class="faint">{step.type}</span> <Status of={step.status} />
      </h3>
      {step.child_run_id !== undefined && (
        <p>
          Child run <RunLink id={step.child_run_id} />
        </p>
      )}
      {step.status === "approval" && step.job_id !== null && (
        <p>
          <a href={href("approvals", step.job_id)}>Decide this approval</a>
        </p>
      )}
      {job != null && job.attempts.length > 0 && <Attempts attempts={job.attempts} />}
      {job?.progress != null && (
        <>
          <h4>Progress</h4>
          <Json value={job.progress} label="Progress" />
        </>
      )}
      <div class="columns">
        <div>
          <h4>Output</h4>
          <Json value={step.left_out === true ? job?.output : step.output} label={`Output of ${step.name}`} />
        </div>
        <div>
          <h4>Error</h4>
          <Json value={step.error} label={`Error of ${step.name}`} />
        </div>
      </div>
      {definition !== undefined && (
        <details>
          <summary>Definition</summary>
          <Json value={definition} label={`Definition of ${step.name}`} />
        </details>
      )}
      {isOver(run.status) && <RerunFrom run={run} step={step} />}
    </section>
  );
}
