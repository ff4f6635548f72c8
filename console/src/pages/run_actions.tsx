// What can be done with a run. Each press has one idempotency key, so a double click is one request to the server.
import { useRef, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf } from "../api/client";
import { may } from "../api/session";
import type { Run } from "../api/types";
import { actionsIn, type Action } from "../logic/status";
import { go, href } from "../router";
import { CopyAs, ProblemBox, say } from "../ui/bits";
import { Dialog } from "../ui/dialog";

const WORDS: Record<Action, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", retry: "Retry", rerun: "Rerun" };

const EXPLAINED: Record<Action, string> = {
  cancel: "Steps that run now are told to stop. Steps that have succeeded and can be undone are compensated. This cannot be taken back.",
  pause: "Steps that run now finish. No new step begins until the run is resumed.",
  resume: "The run goes on where it was paused.",
  retry: "The steps that failed run again in this run. Steps that succeeded are kept.",
  rerun: "Starts a new run of the same workflow with the same input.",
};

async function perform(action: Exclude<Action, "rerun">, run: Run, reason: string, key: string): Promise<Run> {
  const params = { path: { run_id: run.id }, header: { "Idempotency-Key": key } };
  const body = reason === "" ? {} : { reason };
  switch (action) {
    case "cancel":
      return must(api.POST("/api/v1/runs/{run_id}/cancel", { params, body }));
    case "pause":
      return must(api.POST("/api/v1/runs/{run_id}/pause", { params, body: {} }));
    case "resume":
      return must(api.POST("/api/v1/runs/{run_id}/resume", { params, body: {} }));
    case "retry":
      return must(api.POST("/api/v1/runs/{run_id}/retry", { params, body: {} }));
  }
}

/** Starts a new run, from a step on or from the beginning, and goes there. */
export async function rerun(run: Run, fromStep: string | null, key: string): Promise<void> {
  const params = { path: { run_id: run.id }, header: { "Idempotency-Key": key } };
  const started = await must(api.POST("/api/v1/runs/{run_id}/rerun", { params, body: fromStep === null ? {} : { from_step: fromStep } }));
  say(started.created ? "A new run has started" : "This rerun had already started; nothing happened twice");
  go(href("runs", started.run_id));
}

function Confirm({ action, run, onDone, onClose }: { action: Action; run: Run; onDone: (run: Run) => void; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [failure, setFailure] = useState<Failure | null>(null);
  const key = useRef(newKey()); // one for this question, however often its button is pressed
  const submit = (event: Event): void => {
    event.preventDefault();
    const work = action === "rerun" ? rerun(run, null, key.current) : perform(action, run, reason, key.current).then(onDone);
    work.then(onClose, (e: unknown) => setFailure(e as Failure));
  };
  return (
    <Dialog title={`${WORDS[action]} this run?`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>{EXPLAINED[action]}</p>
        {action === "cancel" && (
          <label>
            Reason
            <input value={reason} maxLength={1024} onInput={(e) => setReason(e.currentTarget.value)} />
          </label>
        )}
        {failure !== null && <ProblemBox failure={failure} />}
        <div class="actions">
          <button class={action === "cancel" ? "danger" : "primary"}>{WORDS[action]} the run</button>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <CopyAs request={requestOf("POST", `runs/${run.id}/${action}`, action === "cancel" && reason !== "" ? { reason } : {})} />
        </div>
      </form>
    </Dialog>
  );
}

export function RunActions({ run, onDone }: { run: Run; onDone: (run: Run) => void }) {
  const [asked, setAsked] = useState<Action | null>(null);
  if (!may("run")) return null;
  return (
    <>
      {actionsIn(run.status).map((action) => (
        <button key={action} type="button" onClick={() => setAsked(action)}>
          {WORDS[action]}
        </button>
      ))}
      {asked !== null && <Confirm key={asked} action={asked} run={run} onDone={onDone} onClose={() => setAsked(null)} />}
    </>
  );
}
