// What the server would refuse is not offered.
import type { ComponentChildren } from "preact";
import { may, me, type Allowed as Action } from "../api/session";

export function Allowed({ to, what, children }: { to: Action; what: string; children: ComponentChildren }) {
  if (may(to)) return <>{children}</>;
  return (
    <p class="faint">
      Your role, {me.value?.role}, does not allow {what}.
    </p>
  );
}
