// What a run waits for, as the server explains it, with a link to whatever would let it go on.
import { requestOf } from "../api/client";
import type { Why } from "../api/types";
import { absolute } from "../logic/time";
import { plural } from "../logic/words";
import { href } from "../router";
import { Card, CopyAs, RunLink, Time } from "../ui/bits";

type Reason = Why["waits_for"][number];

function Detail({ reason }: { reason: Reason }) {
  switch (reason.kind) {
    case "limit":
      return (
        <>
          Limit of the {reason.limited_by}
          {reason.key !== undefined && ` (${reason.path ?? ""} = ${reason.key})`}: {reason.current} of {reason.limit} slots are taken
          {reason.holders.length > 0 && " by "}
          {reason.holders.slice(0, 5).map((holder) => (
            <span key={holder.run_id}>
              <RunLink id={holder.run_id} />{" "}
            </span>
          ))}
        </>
      );
    case "worker_queue":
      return (
        <>
          Step <b>{reason.step}</b> is number {reason.place} in queue <code>{reason.queue}</code>.{" "}
          {reason.workers > 0 ? `${plural(reason.workers, "worker")} polled it in the last minute.` : "No worker has polled it in the last minute: start one."}
        </>
      );
    case "worker":
      return (
        <>
          Worker <code>{reason.worker_id}</code> is running step <b>{reason.step}</b>, attempt {reason.attempt}; its lease ends{" "}
          <Time at={reason.lease_expires_at} />.
        </>
      );
    case "approval":
      return (
        <>
          <a href={href("approvals", reason.job_id)}>Approval of step {reason.step}</a>: {reason.approvals} of {reason.needed} given. “{reason.prompt}”
        </>
      );
    case "timer":
      return (
        <>
          A timer until {absolute(reason.due_at)} (<Time at={reason.due_at} />)
        </>
      );
    case "retry":
      return (
        <>
          Step <b>{reason.step}</b> failed; attempt {reason.attempt} of {reason.max_attempts} begins <Time at={reason.due_at} />.
        </>
      );
    case "pause":
      return (
        <>
          Paused by {reason.by ?? "pawl"} <Time at={reason.at} />. Resume it to go on.
        </>
      );
    case "suspension":
      return (
        <>
          Step <b>{reason.step}</b> is suspended{reason.signal !== null && ` until signal ${reason.signal} comes`}
          {reason.until !== null && ` until ${absolute(reason.until)}`}
        </>
      );
    default:
      return (
        <>
          Step <b>{reason.step}</b> waits for {reason.kind.replace("_", " ")} {reason.signal !== undefined && <code>{JSON.stringify(reason.signal)}</code>}
          {reason.child_run_id !== undefined && <RunLink id={reason.child_run_id} />}
        </>
      );
  }
}

export function WhyCard({ why }: { why: Why }) {
  return (
    <Card title="Why it waits" aside={<CopyAs request={requestOf("GET", `runs/${why.run_id}/why`)} />}>
      <p>{why.summary}</p>
      {why.place !== undefined && (
        <p>
          Place {why.place}
          {why.place_is_exact === false && " or later"} of {why.queued_runs} queued runs.
        </p>
      )}
      {why.waits_for.length > 0 && (
        <ul>
          {why.waits_for.map((reason, i) => (
            <li key={i}>
              <Detail reason={reason} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
