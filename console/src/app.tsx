// Which page a path shows. Everything is read again when the tenant changes.
import { tenant } from "./api/client";
import { me } from "./api/session";
import { ApprovalPage } from "./pages/approval";
import { Approvals } from "./pages/approvals";
import { Keys } from "./pages/keys";
import { Overview } from "./pages/overview";
import { Queues } from "./pages/queues";
import { RunPage } from "./pages/run";
import { Runs } from "./pages/runs";
import { SignIn } from "./pages/sign_in";
import { WorkflowPage } from "./pages/workflow";
import { Workflows } from "./pages/workflows";
import { href, parts } from "./router";
import { Empty, Loading } from "./ui/bits";
import { Frame } from "./ui/frame";

function Page() {
  const [section, id] = parts.value;
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
    default:
      return (
        <Empty title="There is no such page">
          <p>
            The link may be from another version. Go to the <a href={href()}>overview</a>.
          </p>
        </Empty>
      );
  }
}

export function App() {
  if (me.value === undefined) return <Loading />;
  if (me.value === null) return <SignIn />;
  return (
    <Frame>
      <Page key={tenant.value} />
    </Frame>
  );
}
