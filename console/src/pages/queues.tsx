// Queues with the jobs that wait in them, and the workers that poll them.
import { useEffect } from "preact/hooks";
import { api, curlOf, must } from "../api/client";
import type { Queue, WorkerInfo } from "../api/types";
import { Card, Command, Curl, Empty, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";

const REFRESH_MS = 3_000; // queues have no events of their own
const PAGE = 200;

async function readAll() {
  const params = { query: { limit: PAGE } };
  const [queues, workers] = await Promise.all([must(api.GET("/api/v1/queues", { params })), must(api.GET("/api/v1/workers", { params }))]);
  return { queues: queues.items, workers: workers.items };
}

const count = (n: number, exact: boolean): string => (exact ? String(n) : `${n}+`);

function QueueRow({ queue }: { queue: Queue }) {
  const stuck = queue.ready > 0 && queue.workers === 0;
  return (
    <tr>
      <td>
        <code>{queue.queue}</code> {stuck && <span class="status bad">no worker</span>}
      </td>
      <td>{count(queue.ready, queue.exact)}</td>
      <td>{count(queue.running, queue.exact)}</td>
      <td>{count(queue.delayed, queue.exact)}</td>
      <td>
        <Time at={queue.oldest} />
      </td>
      <td>{queue.workers}</td>
      <td>
        <Time at={queue.last_polled_at} />
      </td>
    </tr>
  );
}

function WorkerRow({ worker }: { worker: WorkerInfo }) {
  return (
    <tr>
      <td>
        <code>{worker.worker_id}</code> {worker.shared && <span class="label">all tenants</span>}
      </td>
      <td>{worker.queues.join(", ")}</td>
      <td>{count(worker.running, worker.exact)}</td>
      <td>
        <Time at={worker.last_polled_at} />
      </td>
    </tr>
  );
}

function Head({ names }: { names: string[] }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name}>{name}</th>
        ))}
      </tr>
    </thead>
  );
}

export function Queues() {
  useTitle("Queues");
  const { data, failure, reload } = useLoad(readAll, []);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <PageHead title="Queues and workers">
        <Curl text={curlOf("GET", "queues")} />
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
          <div class="scroll" tabIndex={0} role="region" aria-label="Queues">
            <table>
              <Head names={["Queue", "Ready", "Running", "Delayed", "Oldest ready", "Workers", "Last polled"]} />
              <tbody>
                {data.queues.map((queue) => (
                  <QueueRow key={queue.queue} queue={queue} />
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      )}
      {data !== null && data.workers.length > 0 && (
        <Card title="Workers" aside={<Curl text={curlOf("GET", "workers")} />}>
          <div class="scroll" tabIndex={0} role="region" aria-label="Workers">
            <table>
              <Head names={["Worker", "Queues", "Running", "Last polled"]} />
              <tbody>
                {data.workers.map((worker) => (
                  <WorkerRow key={worker.worker_id} worker={worker} />
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      )}
    </>
  );
}
