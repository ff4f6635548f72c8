import { effect } from "@preact/signals";
import { render } from "preact";
import { tenant } from "./api/client";
import { App } from "./app";
import { connectTenant } from "./live/tenant";
import { startRouter } from "./router";
import "./style.css";

startRouter();
effect(() => connectTenant(tenant.value));
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
