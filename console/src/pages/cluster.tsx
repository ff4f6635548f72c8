// Servers that work together, and which of them serves which shard.
import { api, must, requestOf } from "../api/client";
import { duration } from "../logic/time";
import { plural } from "../logic/words";
import { href } from "../router";
import { Card, Command, CopyAs, Loading, PageHead, ProblemBox } from "../ui/bits";
import { usePolled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const REFRESH_MS = 2_000;

const readCluster = () => must(api.GET("/api/v1/cluster", {}));

type Cluster = Awaited<ReturnType<typeof readCluster>>;
type ClusterNode = Cluster["nodes"][number];
type Shard = Cluster["shards"][number];

const FAMILY: Record<ClusterNode["state"] | Shard["state"], string> = {
  live: "good",
  serving: "good",
  opening: "waiting",
  leaving: "waiting",
  draining: "waiting",
  stopping: "waiting",
  lost: "bad",
  free: "bad",
};

const State = ({ of }: { of: keyof typeof FAMILY }) => <span class={`status ${FAMILY[of]}`}>{of}</span>;

/** A server with a data file has no name. */
const nameOf = (node: ClusterNode): string => node.name ?? "this server";
const ownerOf = (shard: Shard): string => (shard.state === "free" ? "nobody" : (shard.owner ?? "this server"));

function Nodes({ cluster }: { cluster: Cluster }) {
  return (
    <Card title="Nodes">
      <Table
        label="Nodes"
        items={cluster.nodes}
        keyOf={nameOf}
        columns={[
          {
            title: "Node",
            cell: (n) => (
              <>
                <strong>{nameOf(n)}</strong> {n.name === cluster.node && <span class="label">answers this page</span>}
              </>
            ),
          },
          { title: "State", cell: (n) => <State of={n.state} /> },
          { title: "Shards", cell: (n) => n.shards, numeric: true },
          { title: "Lease ends in", cell: (n) => (n.lease_ms === null ? "never" : duration(n.lease_ms)) },
          { title: "Reached at", cell: (n) => (n.url === null ? "–" : <code class="url">{n.url}</code>) },
        ]}
      />
    </Card>
  );
}

function Shards({ cluster }: { cluster: Cluster }) {
  return (
    <Card title="Shards">
      <Table
        label="Shards"
        items={cluster.shards}
        keyOf={(s) => s.shard}
        columns={[
          { title: "Shard", cell: (s) => <strong>{s.shard}</strong> },
          { title: "State", cell: (s) => <State of={s.state} /> },
          { title: "Owner", cell: ownerOf },
          { title: "Epoch", cell: (s) => s.epoch ?? "–", numeric: true },
        ]}
      />
    </Card>
  );
}

/** A server with a file of its own. */
function Alone() {
  return (
    <Card title="One server">
      <p>
        This server has its store to itself. Servers that share a PostgreSQL database share its shards: each tenant lives in one of them, and when a server
        fails, the others take over its shards within seconds.
      </p>
      <Command text="pawl serve --store postgres://pawl@db/pawl --node a" />
    </Card>
  );
}

export function ClusterPage() {
  useTitle("Cluster");
  const { data, failure, reload } = usePolled(readCluster, REFRESH_MS);
  const unserved = data?.shards.filter((s) => s.state === "free").length ?? 0;
  return (
    <>
      <PageHead
        title="Cluster"
        lead={
          <>
            Servers and the shards that each of them serves. The <a href={href("server")}>server</a> that answers has a page of its own.
          </>
        }
      >
        <CopyAs request={requestOf("GET", "cluster")} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {unserved > 0 && (
        <div class="problem" role="alert">
          <strong>{plural(unserved, "shard")} without an owner</strong>
          <p>Requests of their tenants are answered with 503 until a server takes them.</p>
        </div>
      )}
      {data !== null && (
        <>
          <Nodes cluster={data} />
          <Shards cluster={data} />
          {data.nodes.length === 1 && data.shards.length === 1 && <Alone />}
        </>
      )}
    </>
  );
}
