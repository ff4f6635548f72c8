// Which page a path shows. Everything is read again when the tenant changes.
import { tenant } from "./api/client";
import { me, trouble } from "./api/session";
import { Access } from "./pages/access";
import { Admission } from "./pages/admission";
import { ApprovalPage } from "./pages/approval";
import { Approvals } from "./pages/approvals";
import { Audit } from "./pages/audit";
import { ClusterPage } from "./pages/cluster";
import { DeadLetters } from "./pages/dead_letters";
import { EntityTypePage, EntityTypes } from "./pages/entities";
import { EntityPage } from "./pages/entity";
import { Events } from "./pages/events";
import { Keys } from "./pages/keys";
import { Overview } from "./pages/overview";
import { Queues } from "./pages/queues";
import { RunPage } from "./pages/run";
import { Runs } from "./pages/runs";
import { SchedulePage, Schedules } from "./pages/schedules";
import { ServerPage } from "./pages/server";
import { SignIn } from "./pages/sign_in";
import { Tenants } from "./pages/tenants";
import { WebhookPage, Webhooks } from "./pages/webhooks";
import { WorkflowPage } from "./pages/workflow";
import { Workflows } from "./pages/workflows";
import { href, parts } from "./router";
import { Loading, PageHead } from "./ui/bits";
import { Frame } from "./ui/frame";

function EntityPages({ type, id }: { type: string | undefined; id: string | undefined }) {
  if (type === undefined) return <EntityTypes />;
  return id === undefined ? <EntityTypePage key={type} type={type} /> : <EntityPage key={`${type} ${id}`} type={type} id={id} />;
}

function Page() {
  const [section, id, below] = parts.value;
  switch (section) {
    case undefined:
      return <Overview />;
    case "runs":
      return id === undefined ? <Runs /> : <RunPage key={id} id={id} />;
    case "approvals":
      return id === undefined ? <Approvals /> : <ApprovalPage key={id} id={id} />;
    case "workflows":
      return id === undefined ? <Workflows /> : <WorkflowPage key={id} id={id} />;
    case "queues":
      return <Queues />;
    case "keys":
      return <Keys />;
    case "schedules":
      return id === undefined ? <Schedules /> : <SchedulePage key={id} id={id} />;
    case "entities":
      return <EntityPages type={id} id={below} />;
    case "admission":
      return <Admission />;
    case "dead-letters":
      return <DeadLetters />;
    case "events":
      return <Events />;
    case "webhooks":
      return id === undefined ? <Webhooks /> : <WebhookPage key={id} id={id} />;
    case "audit":
      return <Audit />;
    case "tenants":
      return <Tenants />;
    case "access":
      return <Access />;
    case "cluster":
      return <ClusterPage />;
    case "server":
      return <ServerPage />;
    default:
      return (
        <PageHead
          title="There is no such page"
          lead={
            <>
              The link may be from another version. Go to the <a href={href()}>overview</a>.
            </>
          }
        />
      );
  }
}

function Waiting({ why }: { why: string }) {
  return (
    <main>
      <PageHead title="Waiting for the server" lead={why} />
      <p role="status">The page tries again every second.</p>
    </main>
  );
}

export function App() {
  if (me.value === undefined) return trouble.value === null ? <Loading /> : <Waiting why={trouble.value} />;
  if (me.value === null) return <SignIn />;
  return (
    <Frame>
      <Page key={tenant.value} />
    </Frame>
  );
}
