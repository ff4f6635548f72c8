import { effect } from "@preact/signals";
import { render } from "preact";
import { tenant } from "./api/client";
import { loadMe, me, trouble } from "./api/session";
import { App } from "./app";
import { connectTenant, disconnectTenant } from "./live/tenant";
import { nameTenant, startRouter } from "./router";
import "./style.css";

startRouter();
effect(() => {
  if (me.value == null) disconnectTenant();
  else connectTenant(tenant.value);
});
effect(() => {
  if (me.value != null) nameTenant(me.value.all_tenants ? tenant.value : null);
});

/** Until the server answers: it may be starting. */
function begin(): void {
  loadMe().catch((e: unknown) => {
    trouble.value = (e as Error).message;
    setTimeout(begin, 1_000);
  });
}
begin();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
