// Queues with the jobs that wait in them, and the workers that poll them.
import { api, must, requestOf } from "../api/client";
import type { Queue, WorkerInfo } from "../api/types";
import { Card, Command, CopyAs, Empty, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { usePolled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const REFRESH_MS = 3_000; // queues have no events of their own
const PAGE = 200;

async function readAll() {
  const params = { query: { limit: PAGE } };
  const [queues, workers] = await Promise.all([must(api.GET("/api/v1/queues", { params })), must(api.GET("/api/v1/workers", { params }))]);
  return { queues: queues.items, workers: workers.items };
}

const count = (n: number, exact: boolean): string => (exact ? String(n) : `${n}+`);

function QueueTable({ queues }: { queues: Queue[] }) {
  return (
    <Table
      label="Queues"
      items={queues}
      keyOf={(queue) => queue.queue}
      columns={[
        {
          title: "Queue",
          cell: (queue) => (
            <>
              <code>{queue.queue}</code> {queue.ready > 0 && queue.workers === 0 && <span class="status bad">no worker</span>}
            </>
          ),
        },
        { title: "Ready", cell: (queue) => count(queue.ready, queue.exact), numeric: true },
        { title: "Running", cell: (queue) => count(queue.running, queue.exact), numeric: true },
        { title: "Delayed", cell: (queue) => count(queue.delayed, queue.exact), numeric: true },
        { title: "Suspended", cell: (queue) => count(queue.suspended, queue.exact), numeric: true },
        { title: "Oldest ready", cell: (queue) => <Time at={queue.oldest} /> },
        { title: "Workers", cell: (queue) => queue.workers, numeric: true },
        { title: "Last polled", cell: (queue) => <Time at={queue.last_polled_at} /> },
      ]}
    />
  );
}

function WorkerTable({ workers }: { workers: WorkerInfo[] }) {
  return (
    <Table
      label="Workers"
      items={workers}
      keyOf={(worker) => worker.worker_id}
      columns={[
        {
          title: "Worker",
          cell: (worker) => (
            <>
              <code>{worker.worker_id}</code> {worker.shared && <span class="label">all tenants</span>}
            </>
          ),
        },
        { title: "Queues", cell: (worker) => worker.queues.join(", ") },
        { title: "Running", cell: (worker) => count(worker.running, worker.exact), numeric: true },
        { title: "Last polled", cell: (worker) => <Time at={worker.last_polled_at} /> },
      ]}
    />
  );
}

export function Queues() {
  useTitle("Queues");
  const { data, failure, reload } = usePolled(readAll, REFRESH_MS);
  return (
    <>
      <PageHead title="Queues and workers" lead="Jobs that wait for a worker, and the workers that ask for them.">
        <CopyAs request={requestOf("GET", "queues")} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {data?.queues.length === 0 && (
        <Empty title="No queues yet">
          <p>A queue exists while it has jobs, or while workers poll it. A worker can be any command:</p>
          <Command text="pawl worker --queue default -- ./my-handler" />
        </Empty>
      )}
      {data !== null && data.queues.length > 0 && (
        <Card title="Queues">
          <QueueTable queues={data.queues} />
        </Card>
      )}
      {data !== null && data.workers.length > 0 && (
        <Card title="Workers" aside={<CopyAs request={requestOf("GET", "workers")} />}>
          <WorkerTable workers={data.workers} />
        </Card>
      )}
    </>
  );
}
