// What waits for a person, oldest first.
import { useEffect } from "preact/hooks";
import { api, must, requestOf } from "../api/client";
import type { ApprovalList, ApprovalStatus, ApprovalSummary } from "../api/types";
import { listen } from "../live/tenant";
import { elapsed } from "../logic/time";
import { go, href, query } from "../router";
import { Command, CopyAs, Empty, Loading, PageHead, ProblemBox, RunLink, Status, Time } from "../ui/bits";
import { now, useLoad, useThrottled, useTitle } from "../ui/hooks";
import { Table, type Column } from "../ui/table";

const STATUSES: ApprovalStatus[] = ["pending", "approved", "rejected", "expired", "void"];
const PAGE = 200;
const PAGES_MAX = 10; // of pending approvals, which the server lists newest first
const REFRESH_MS = 300;

interface Queue {
  items: ApprovalSummary[];
  isAll: boolean;
}

/** Pending ones oldest first, so all of them are read, within reason; of the others the newest. */
async function readQueue(status: ApprovalStatus): Promise<Queue> {
  const items: ApprovalSummary[] = [];
  let cursor: string | null = null;
  for (let pages = status === "pending" ? PAGES_MAX : 1; pages > 0; pages--) {
    const query: { status: ApprovalStatus; limit: number; cursor?: string } = { status, limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: ApprovalList = await must(api.GET("/api/v1/approvals", { params: { query } }));
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  return { items: status === "pending" ? items.reverse() : items, isAll: cursor === null };
}

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
      : { title: "Outcome", cell: (item) => <Status of={item.status === "approved" ? "succeeded" : "denied"} /> },
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
  const { data, failure, reload } = useLoad(() => readQueue(status), [status]);
  const refresh = useThrottled(reload, REFRESH_MS);
  useEffect(() => listen((events) => (events === "reset" || events.some((e) => e.type.startsWith("approval."))) && refresh()), []);
  const items = data?.items ?? [];
  return (
    <>
      <PageHead title="Approvals" lead="What waits for a person, oldest first. A decision counts once, however often it is pressed.">
        <CopyAs request={requestOf("GET", `approvals?status=${status}`)} />
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
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {data !== null && items.length === 0 && (
        <Empty title={status === "pending" ? "Nothing waits for a decision" : `No approval is ${status}`}>
          <p>A step of type approval stops a run until a person decides. Add one to a workflow:</p>
          <Command text={JSON.stringify(EXAMPLE)} />
        </Empty>
      )}
      {items.length > 0 && <Table label="Approvals" items={items} keyOf={(item) => item.job_id} columns={columnsFor(status)} />}
      {data?.isAll === false && <p class="faint">These are the newest {items.length}; there are more.</p>}
    </>
  );
}
