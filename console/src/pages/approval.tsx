// One approval, which a mail or a chat can link to: what is asked, and the decision.
import { useEffect, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf } from "../api/client";
import type { Approval, ApprovalStatus, Decision, DecisionRequest } from "../api/types";
import { listen } from "../live/tenant";
import { outcomeOf } from "../logic/decision";
import { readJson, type Read } from "../logic/form";
import { absolute } from "../logic/time";
import { times } from "../logic/words";
import { Allowed } from "../ui/allowed";
import { Card, CopyAs, FullTime, Json, Loading, PageHead, ProblemBox, RunLink, Status } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";

type Verb = "approve" | "reject";

/** Also when it is decided: the same decision again is harmless, and the opposite is refused with the reason. */
const DECIDABLE: ApprovalStatus[] = ["pending", "approved", "rejected"];

async function decide(approval: Approval, verb: Verb, body: DecisionRequest, key: string): Promise<Decision> {
  const params = { path: { job_id: approval.job_id }, header: { "Idempotency-Key": key } };
  if (verb === "approve") return must(api.POST("/api/v1/approvals/{job_id}/approve", { params, body }));
  return must(api.POST("/api/v1/approvals/{job_id}/reject", { params, body }));
}

/** The decision is for exactly the content that is shown: the hash makes the server refuse if it has changed since. */
function bodyOf(approval: Approval, reason: string, edited: Read | null): DecisionRequest {
  return {
    expected_hash: approval.content_hash,
    ...(reason === "" ? {} : { reason }),
    ...(edited?.ok === true ? { edited: edited.input } : {}),
  };
}

function Editor({
  content,
  text,
  fault,
  onInput,
}: {
  content: unknown;
  text: string | null;
  fault: string | undefined;
  onInput: (text: string | null) => void;
}) {
  const initial = JSON.stringify(content, null, 2);
  return (
    <details>
      <summary>Edit the content before you approve</summary>
      <label>
        Content as JSON
        <textarea
          value={text ?? initial}
          rows={6}
          spellcheck={false}
          onInput={(e) => onInput(e.currentTarget.value === initial ? null : e.currentTarget.value)}
        />
      </label>
      {fault !== undefined && <p class="fault">{fault}</p>}
    </details>
  );
}

function Decide({ approval, onDone }: { approval: Approval; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [text, setText] = useState<string | null>(null); // null: the content as it is
  const [decision, setDecision] = useState<Decision | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const edited = text === null ? null : readJson("content", text);
  const settle = (made: Decision | null, failed: Failure | null): void => {
    setDecision(made);
    setFailure(failed);
    onDone();
  };
  // Each press is a request of its own: the server, not this page, makes sure that a decision counts once.
  const press = (verb: Verb): void =>
    void decide(approval, verb, bodyOf(approval, reason, verb === "approve" ? edited : null), newKey()).then(
      (made) => settle(made, null),
      (e: unknown) => settle(null, e as Failure),
    );
  return (
    <Card title="Your decision">
      <label>
        Reason
        <textarea value={reason} maxLength={1024} rows={2} onInput={(e) => setReason(e.currentTarget.value)} />
      </label>
      {approval.status === "pending" && (
        <Editor content={approval.content} text={text} fault={edited?.ok === false ? edited.faults.content : undefined} onInput={setText} />
      )}
      <div class="actions">
        <button type="button" class="primary" disabled={edited?.ok === false} onClick={() => press("approve")}>
          {edited === null ? "Approve" : "Approve with this content"}
        </button>
        <button type="button" class="danger" onClick={() => press("reject")}>
          Reject
        </button>
        <CopyAs label="Copy approve as" request={requestOf("POST", `approvals/${approval.job_id}/approve`, bodyOf(approval, reason, edited))} />
        <CopyAs label="Copy reject as" request={requestOf("POST", `approvals/${approval.job_id}/reject`, bodyOf(approval, reason, null))} />
      </div>
      <p class="faint">Pressing twice is harmless: the first decision counts, the second is answered with it.</p>
      {decision !== null && (
        <p class="outcome" role="status">
          {outcomeOf(decision)}
        </p>
      )}
      {failure !== null && <ProblemBox failure={failure} />}
    </Card>
  );
}

function Facts({ approval }: { approval: Approval }) {
  const { roles, users } = approval.approvers;
  const who = [...(roles ?? []).map((role) => `role ${role}`), ...(users ?? [])].join(", ") || "everyone whose role allows it";
  return (
    <dl class="facts">
      <div>
        <dt>Run</dt>
        <dd>
          {approval.workflow_id} <RunLink id={approval.run_id} />, step {approval.step}
        </dd>
      </div>
      <div>
        <dt>Requested</dt>
        <dd>
          <FullTime at={approval.requested_at} /> by {approval.requested_by}
        </dd>
      </div>
      <div>
        <dt>Expires</dt>
        <dd>{approval.expires_at === null ? "never" : `${absolute(approval.expires_at)}, then ${approval.on_expire}`}</dd>
      </div>
      <div>
        <dt>Approvers</dt>
        <dd>
          {who}
          {approval.forbid_requester && `, not ${approval.requested_by}`}
        </dd>
      </div>
      <div>
        <dt>Approvals</dt>
        <dd>
          <progress value={approval.approvals} max={approval.needed} aria-label="Approvals given" /> {approval.approvals} of {approval.needed}
        </dd>
      </div>
    </dl>
  );
}

function History({ approval }: { approval: Approval }) {
  return (
    <Card title="History">
      <ul>
        {approval.votes.map((vote, i) => (
          <li key={i}>
            {vote.by} approved <FullTime at={vote.at} /> {vote.reason !== null && `“${vote.reason}”`}
          </li>
        ))}
        {approval.decided_at !== null && (
          <li>
            {approval.status} by {approval.decided_by} <FullTime at={approval.decided_at} /> {approval.reason !== null && `“${approval.reason}”`}
          </li>
        )}
        {approval.edited != null && (
          <li>
            The content was edited: <code>{JSON.stringify(approval.edited)}</code>
          </li>
        )}
        {approval.votes.length === 0 && approval.decided_at === null && <li>Nobody has decided yet.</li>}
      </ul>
      {(approval.replays > 0 || approval.conflicts > 0) && (
        <p class="faint">
          {approval.replays > 0 && `The decision was repeated ${times(approval.replays)}, without effect. `}
          {approval.conflicts > 0 && `Another one was refused ${times(approval.conflicts)}.`}
        </p>
      )}
    </Card>
  );
}

export function ApprovalPage({ id }: { id: string }) {
  const { data: approval, failure, reload } = useLoad(() => must(api.GET("/api/v1/approvals/{job_id}", { params: { path: { job_id: id } } })), [id]);
  useTitle("Approval");
  useEffect(() => listen((events) => (events === "reset" || events.some((e) => e.type.startsWith("approval."))) && reload()), []);
  if (approval === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={reload} />;
  return (
    <>
      <PageHead title={approval.prompt || `Approve step ${approval.step}?`}>
        <Status of={approval.status === "pending" ? "approval" : approval.status} />
        <CopyAs request={requestOf("GET", `approvals/${id}`)} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      <Facts approval={approval} />
      <Card title="What is asked">
        <Json value={approval.content} label="Content" />
        <p class="faint">
          SHA-256 of the content and the prompt: <code class="hash">{approval.content_hash}</code>. Your decision is for exactly this content.
        </p>
      </Card>
      {DECIDABLE.includes(approval.status) && (
        <Allowed to="decide" what="decisions">
          <Decide approval={approval} onDone={reload} />
        </Allowed>
      )}
      <History approval={approval} />
    </>
  );
}
