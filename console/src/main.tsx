import { effect } from "@preact/signals";
import { render } from "preact";
import { tenant } from "./api/client";
import { loadMe, me } from "./api/session";
import { App } from "./app";
import { connectTenant, disconnectTenant } from "./live/tenant";
import { startRouter } from "./router";
import "./style.css";

startRouter();
effect(() => {
  if (me.value == null) disconnectTenant();
  else connectTenant(tenant.value);
});

/** Until the server answers: it may be starting. */
function begin(): void {
  loadMe().catch(() => setTimeout(begin, 1_000));
}
begin();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
