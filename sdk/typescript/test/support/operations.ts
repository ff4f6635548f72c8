/** The operations of docs/openapi.yaml, as this library spells them. */

import type {
  Client,
  ChangeOptions,
  Definition,
  PutEntityType,
  PutSchedule,
  StartOptions,
  TenantSettings,
} from "../../src/index.js";
import type { Json, Members } from "./fixtures.js";

export interface Call {
  op: string;
  args: Members;
}

type Operation = (client: Client, args: Members, change: ChangeOptions & { if_match?: number }) => unknown;

const text = (value: Json | undefined): string => value as string;
const job = (args: Members): { job_id: string; lease_token: string } => ({
  job_id: text(args.job_id),
  lease_token: text(args.lease_token),
});
const without = (args: Members, ...names: string[]): Members =>
  Object.fromEntries(Object.entries(args).filter(([name]) => !names.includes(name)));
const run = (client: Client, args: Members): ReturnType<Client["run"]> => client.run(text(args.run_id));
const page = <T>(list: { page(cursor?: string): Promise<T> }, args: Members): Promise<T> =>
  list.page(args.cursor as string | undefined);

const RUNS: Record<string, Operation> = {
  startRun: async (client, args, change) => {
    const { wait_ms, ...rest } = without(args, "workflow_id", "input");
    const options = { ...rest, ...change, ...(wait_ms === undefined ? {} : { wait: wait_ms }) } as StartOptions;
    return (await client.start(text(args.workflow_id), args.input, options)).started;
  },
  listRuns: (client, args) => page(client.runs.list(without(args, "cursor")), args),
  getRun: (client, args) => client.runs.get(text(args.run_id)),
  whyRun: (client, args) => run(client, args).why(),
  listRunEvents: (client, args) => page(run(client, args).events(without(args, "run_id", "cursor")), args),
  cancelRun: (client, args, change) => run(client, args).cancel({ ...without(args, "run_id"), ...change }),
  pauseRun: (client, args, change) => run(client, args).pause(change),
  resumeRun: (client, args, change) => run(client, args).resume(change),
  retryRun: (client, args, change) => run(client, args).retry(change),
  rerunRun: (client, args, change) => run(client, args).rerun({ ...without(args, "run_id"), ...change }),
  signalRun: (client, args, change) =>
    run(client, args).signal(text(args.name), args.payload, {
      ...without(args, "run_id", "name", "payload"),
      ...change,
    }),
  bulkRuns: (client, args, change) =>
    client.runs.bulk({ ...(args as unknown as Parameters<Client["runs"]["bulk"]>[0]), ...change }),
};

const JOBS: Record<string, Operation> = {
  claimJobs: (client, args) => client.jobs.claim(args as unknown as Parameters<Client["jobs"]["claim"]>[0]),
  claimJob: (client, args) =>
    client.jobs.claimOne(text(args.job_id), without(args, "job_id") as unknown as { worker_id: string }),
  getJob: (client, args) => client.jobs.get(text(args.job_id)),
  completeJob: (client, args) =>
    client.jobs.complete(job(args), args.output, without(args, "job_id", "lease_token", "output")),
  failJob: (client, args) => client.jobs.fail(job(args), args.error as unknown as { code: string }),
  heartbeatJob: (client, args) => client.jobs.heartbeat(job(args), without(args, "job_id", "lease_token")),
  releaseJob: (client, args) => client.jobs.release(job(args)),
  completeJobs: (client, args) =>
    client.jobs.completeMany(args as unknown as Parameters<Client["jobs"]["completeMany"]>[0]),
  checkpointJob: (client, args) =>
    client.jobs.checkpoint(
      job(args),
      text(args.name),
      without(args, "job_id", "lease_token", "name") as unknown as { output: unknown },
    ),
  suspendJob: (client, args) => client.jobs.suspend(job(args), without(args, "job_id", "lease_token")),
  listQueues: (client, args) => page(client.jobs.queues(), args),
  listWorkers: (client, args) => page(client.jobs.workers(), args),
  listDeadLetters: (client, args) => page(client.jobs.deadLetters(), args),
  retryDeadLetter: (client, args, change) => client.jobs.retryDeadLetter(text(args.job_id), change),
  dropDeadLetter: (client, args, change) => client.jobs.dropDeadLetter(text(args.job_id), change),
};

const PEOPLE: Record<string, Operation> = {
  listApprovals: (client, args) => page(client.approvals.list(without(args, "cursor")), args),
  getApproval: (client, args) => client.approvals.get(text(args.job_id)),
  approvalAnalytics: (client, args) => client.approvals.analytics(args),
  approve: (client, args, change) =>
    client.approvals.approve(text(args.job_id), { ...without(args, "job_id"), ...change }),
  reject: (client, args, change) =>
    client.approvals.reject(text(args.job_id), { ...without(args, "job_id"), ...change }),
};

const WORKFLOWS: Record<string, Operation> = {
  listWorkflows: (client, args) => page(client.workflows.list(), args),
  getWorkflow: (client, args) => client.workflows.get(text(args.workflow_id), without(args, "workflow_id")),
  putWorkflow: (client, args, change) =>
    client.workflows.put(text(args.workflow_id), args.definition as unknown as Definition, change),
  archiveWorkflow: (client, args, change) => client.workflows.archive(text(args.workflow_id), change),
  listWorkflowVersions: (client, args) => page(client.workflows.versions(text(args.workflow_id)), args),
  validateWorkflow: (client, args) =>
    client.workflows.validate(text(args.workflow_id), args.definition as unknown as Definition),
  listSchedules: (client, args) => page(client.schedules.list(), args),
  putSchedule: (client, args, change) =>
    client.schedules.put(text(args.schedule_id), without(args, "schedule_id") as unknown as PutSchedule, change),
  getSchedule: (client, args) => client.schedules.get(text(args.schedule_id)),
  deleteSchedule: (client, args, change) => client.schedules.delete(text(args.schedule_id), change),
  triggerSchedule: (client, args, change) => client.schedules.trigger(text(args.schedule_id), change),
};

const ENTITIES: Record<string, Operation> = {
  listEntityTypes: (client, args) => page(client.entities.types(), args),
  putEntityType: (client, args, change) =>
    client.entities.defineType(text(args.type), without(args, "type") as unknown as PutEntityType, change),
  getEntityType: (client, args) => client.entities.type(text(args.type)),
  getEntityTypeStats: (client, args) => client.entities.stats(text(args.type)),
  listEntities: (client, args) => page(client.entities.list(text(args.type), without(args, "type")), args),
  getEntity: (client, args) => client.entities.get(text(args.type), text(args.id)),
  deleteEntity: (client, args, change) => client.entities.delete(text(args.type), text(args.id), change),
  signalEntity: (client, args, change) =>
    client.entities.signal(text(args.type), text(args.id), text(args.name), args.payload, {
      dedup_key: text(args.dedup_key),
      ...change,
    }),
  updateEntity: (client, args, change) =>
    client.entities.update(text(args.type), text(args.id), text(args.name), args.payload, {
      dedup_key: text(args.dedup_key),
      ...(args.wait_ms === undefined ? {} : { wait: args.wait_ms as number }),
      ...change,
    }),
  getEntityUpdate: (client, args) => client.entities.outcome(text(args.type), text(args.id), args.seq as number),
  listEntityEvents: (client, args) => page(client.entities.events(text(args.type), text(args.id)), args),
  listEntityGenerations: (client, args) => page(client.entities.generations(text(args.type), text(args.id)), args),
  migrateEntity: (client, args, change) =>
    client.entities.migrate(text(args.type), text(args.id), { ...without(args, "type", "id"), ...change }),
};

const WEBHOOKS: Record<string, Operation> = {
  listWebhooks: (client, args) => page(client.webhooks.list(), args),
  createWebhook: (client, args, change) =>
    client.webhooks.create(args as unknown as Parameters<Client["webhooks"]["create"]>[0], change),
  getWebhook: (client, args) => client.webhooks.get(text(args.webhook_id)),
  putWebhook: (client, args, change) => client.webhooks.put(text(args.webhook_id), without(args, "webhook_id"), change),
  deleteWebhook: (client, args, change) => client.webhooks.delete(text(args.webhook_id), change),
  rotateWebhook: (client, args, change) =>
    client.webhooks.rotate(text(args.webhook_id), { ...without(args, "webhook_id"), ...change }),
  testWebhook: (client, args, change) => client.webhooks.test(text(args.webhook_id), change),
  listDeliveries: (client, args) => page(client.webhooks.deliveries(text(args.webhook_id)), args),
  redeliver: (client, args, change) => client.webhooks.redeliver(text(args.webhook_id), text(args.delivery_id), change),
};

const ADMIN: Record<string, Operation> = {
  listTenants: (client, args) => page(client.admin.tenants(), args),
  getTenant: (client, args) => client.admin.tenant(text(args.tenant_id)),
  putTenant: (client, args, change) =>
    client.admin.setTenant(text(args.tenant_id), args.settings as unknown as TenantSettings, change),
  listTenantSettings: (client, args) => page(client.admin.tenantSettings(text(args.tenant_id)), args),
  rollbackTenant: (client, args, change) =>
    client.admin.rollbackTenant(text(args.tenant_id), { ...without(args, "tenant_id"), ...change }),
  listKeys: (client, args) => page(client.admin.keys(), args),
  createKey: (client, args, change) =>
    client.admin.createKey(args as unknown as Parameters<Client["admin"]["createKey"]>[0], change),
  revokeKey: (client, args, change) => client.admin.revokeKey(text(args.key_id), change),
  getIdempotencyKey: (client, args) => client.admin.idempotencyKey(text(args.key)),
  releaseIdempotencyKey: (client, args, change) => client.admin.releaseIdempotencyKey(text(args.key), change),
  listOutbox: (client, args) => client.admin.outbox(args),
  retryParked: (client, args, change) => client.admin.retryParked(text(args.message_id), change),
  listAudit: (client, args) => page(client.admin.audit(without(args, "cursor")), args),
  verifyAudit: (client) => client.admin.verifyAudit(),
  doctor: (client) => client.admin.doctor(),
  repair: (client, _args, change) => client.admin.repair(change),
  health: (client) => client.server.health(),
  ready: (client) => client.server.ready(),
};

const OPERATIONS: Record<string, Operation> = {
  ...RUNS,
  ...JOBS,
  ...PEOPLE,
  ...WORKFLOWS,
  ...ENTITIES,
  ...WEBHOOKS,
  ...ADMIN,
};

/** Makes the call of a fixture. */
export function perform(client: Client, { op, args }: Call): Promise<unknown> {
  const operation = OPERATIONS[op];
  if (operation === undefined) throw new Error(`no operation ${op}`);
  const { idempotency_key, if_match, ...rest } = args;
  const change: { key?: string; if_match?: number } = {};
  if (idempotency_key !== undefined) change.key = text(idempotency_key);
  if (if_match !== undefined) change.if_match = if_match as number;
  return Promise.resolve(operation(client, rest, change));
}
