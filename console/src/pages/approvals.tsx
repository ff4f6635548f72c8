// What waits for a person, oldest first.
import { useEffect } from "preact/hooks";
import { api, must, requestOf } from "../api/client";
import type { ApprovalStatus, ApprovalSummary } from "../api/types";
import { listen } from "../live/tenant";
import { elapsed } from "../logic/time";
import { go, href, query } from "../router";
import { Command, CopyAs, Empty, PageHead, RunLink, Status, Time } from "../ui/bits";
import { now, usePages, useThrottled, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";
import type { Column } from "../ui/table";

const STATUSES: ApprovalStatus[] = ["pending", "approved", "rejected", "expired", "void"];
const PAGE = 100;
const REFRESH_MS = 300;

/** What waits longest comes first; of what is decided, the newest. */
const orderOf = (status: ApprovalStatus): "oldest" | "newest" => (status === "pending" ? "oldest" : "newest");

function columnsFor(status: ApprovalStatus): Array<Column<ApprovalSummary>> {
  return [
    {
      title: "Asked",
      cell: (item) => (
        <a href={href("approvals", item.job_id)} data-entry>
          {item.prompt || `Approve step ${item.step}?`}
        </a>
      ),
    },
    status === "pending"
      ? { title: "Waits for", cell: (item) => elapsed(item.requested_at, null, now.value) }
      : { title: "Outcome", cell: (item) => <Status of={item.status} /> },
    { title: "Votes", cell: (item) => `${item.approvals} of ${item.needed}` },
    { title: "Step", cell: (item) => `${item.workflow_id} · ${item.step}` },
    { title: "Run", cell: (item) => <RunLink id={item.run_id} /> },
    { title: "Requested by", cell: (item) => item.requested_by },
    { title: "Expires", cell: (item) => <Time at={item.expires_at} /> },
  ];
}

const EXAMPLE = { name: "ok", type: "approval", prompt: "Refund ${input.amount}?", approvers: { count: 1 } };

export function Approvals() {
  const status = (query.value.get("status") ?? "pending") as ApprovalStatus;
  return <ApprovalQueue key={status} status={status} />;
}

function ApprovalQueue({ status }: { status: ApprovalStatus }) {
  useTitle("Approvals");
  const order = orderOf(status);
  const list = usePages(
    (cursor) => must(api.GET("/api/v1/approvals", { params: { query: { status, order, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) } } })),
    [status],
  );
  const refresh = useThrottled(list.reload, REFRESH_MS);
  useEffect(() => listen((events) => (events === "reset" || events.some((e) => e.type.startsWith("approval."))) && refresh()), []);
  return (
    <>
      <PageHead title="Approvals" lead="What waits for a person, oldest first. A decision counts once, however often it is pressed.">
        <CopyAs request={requestOf("GET", `approvals?status=${status}&order=${order}`)} />
      </PageHead>
      <form class="filters">
        <label>
          Status
          <select data-filter value={status} onChange={(e) => go(`${href("approvals")}?status=${e.currentTarget.value}`, true)}>
            {STATUSES.map((s) => (
              <option key={s}>{s}</option>
            ))}
          </select>
        </label>
      </form>
      <PagedTable
        label="Approvals"
        list={list}
        keyOf={(item) => item.job_id}
        columns={columnsFor(status)}
        empty={
          <Empty title={status === "pending" ? "Nothing waits for a decision" : `No approval is ${status}`}>
            <p>A step of type approval stops a run until a person decides. Add one to a workflow:</p>
            <Command text={JSON.stringify(EXAMPLE)} />
          </Empty>
        }
      />
    </>
  );
}
