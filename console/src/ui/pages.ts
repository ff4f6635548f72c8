// The pages that the navigation shows, in groups, with the key that leads to each.
import type { Allowed } from "../api/session";
import type { IconName } from "./icons";

export interface PageLink {
  path: string;
  title: string;
  icon: IconName;
  /** After g. */
  key: string;
  /** What the role must allow; absent: anyone may look. */
  needs?: Allowed;
}

export const GROUPS: ReadonlyArray<readonly [name: string, pages: readonly PageLink[]]> = [
  [
    "Work",
    [
      { path: "", title: "Overview", icon: "overview", key: "o" },
      { path: "runs", title: "Runs", icon: "runs", key: "r" },
      { path: "approvals", title: "Approvals", icon: "approvals", key: "a" },
      { path: "workflows", title: "Workflows", icon: "workflows", key: "w" },
      { path: "schedules", title: "Schedules", icon: "schedules", key: "s" },
      { path: "entities", title: "Entities", icon: "entities", key: "n" },
    ],
  ],
  [
    "Operate",
    [
      { path: "queues", title: "Queues", icon: "queues", key: "q" },
      { path: "admission", title: "Admission", icon: "admission", key: "l", needs: "admin" },
      { path: "dead-letters", title: "Dead letters", icon: "dead_letters", key: "d" },
      { path: "keys", title: "Idempotency", icon: "keys", key: "i" },
    ],
  ],
  [
    "Connect",
    [
      { path: "events", title: "Events", icon: "events", key: "e" },
      { path: "webhooks", title: "Webhooks", icon: "webhooks", key: "h" },
    ],
  ],
  [
    "Govern",
    [
      { path: "audit", title: "Audit", icon: "audit", key: "u", needs: "admin" },
      { path: "tenants", title: "Tenants", icon: "tenants", key: "t", needs: "rule_server" },
      { path: "access", title: "API keys", icon: "access", key: "k", needs: "admin" },
      { path: "cluster", title: "Cluster", icon: "cluster", key: "c", needs: "rule_server" },
      { path: "server", title: "Server", icon: "server", key: "v" },
    ],
  ],
];

export const PAGES: readonly PageLink[] = GROUPS.flatMap(([, pages]) => pages);
