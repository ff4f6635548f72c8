/** What administrators do: tenants, API keys, idempotency keys, the audit trail, the data. */

import type {
  ApiKey,
  AuditEntry,
  AuditVerdict,
  CreateKey,
  CreatedApiKey,
  DoctorReport,
  IdempotencyRecord,
  Outbox,
  RepairReport,
  Retrying,
  RevokedApiKey,
  SettingsVersion,
  Tenant,
  TenantSettings,
} from "../wire.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

const tenantPath = (id: string): string => `/api/v1/tenants/${segment(id)}`;

/** The routes for administrators: `client.admin`. */
export class Admin extends Resource {
  /**
   * Creates a tenant, or changes the settings that are given. `null` is the default of a setting.
   *
   * @example
   * ```ts
   * await client.admin.setTenant("acme", { max_concurrent_runs: 50, at_limit: "queue" });
   * ```
   */
  setTenant(id: string, settings: TenantSettings, options: ChangeOptions = {}): Promise<Tenant> {
    return this.change("PUT", tenantPath(id), settings, options);
  }

  /**
   * A tenant's settings and its numbers of runs.
   *
   * @example
   * ```ts
   * console.log((await client.admin.tenant("default")).active_runs);
   * ```
   */
  tenant(id: string, options: RequestOptions = {}): Promise<Tenant> {
    return this.read(tenantPath(id), {}, options);
  }

  /**
   * All tenants by id.
   *
   * @example
   * ```ts
   * for await (const { id, queued_runs } of client.admin.tenants()) console.log(id, queued_runs);
   * ```
   */
  tenants(options: ListOptions = {}): Pages<Tenant> {
    return this.pages("/api/v1/tenants", options);
  }

  /**
   * The versions of a tenant's settings, newest first.
   *
   * @example
   * ```ts
   * await client.admin.setTenant("acme-eu", { weight: 2 });
   * console.log((await client.admin.tenantSettings("acme-eu").all())[0]?.current); // true
   * ```
   */
  tenantSettings(id: string, options: ListOptions = {}): Pages<SettingsVersion> {
    return this.pages(`${tenantPath(id)}/settings`, options);
  }

  /**
   * Restores earlier settings of a tenant; without a version, those before the last change.
   *
   * @example
   * ```ts
   * await client.admin.setTenant("acme-us", { weight: 2 });
   * await client.admin.setTenant("acme-us", { weight: 3 });
   * console.log((await client.admin.rollbackTenant("acme-us")).weight); // 2
   * ```
   */
  rollbackTenant(id: string, { version, ...options }: ChangeOptions & { version?: number } = {}): Promise<Tenant> {
    return this.change("POST", `${tenantPath(id)}/rollback`, { version }, options);
  }

  /**
   * Creates an API key. Only this answer has `key`.
   *
   * @example
   * ```ts
   * const { key } = await client.admin.createKey({ role: "worker", label: "mail workers" });
   * console.log(key?.startsWith("pawl_")); // true
   * ```
   */
  createKey(given: CreateKey, options: ChangeOptions = {}): Promise<CreatedApiKey> {
    return this.change("POST", "/api/v1/keys", given, options);
  }

  /**
   * The API keys, oldest first, without their secrets.
   *
   * @example
   * ```ts
   * for await (const { prefix, role } of client.admin.keys()) console.log(prefix, role);
   * ```
   */
  keys(options: ListOptions = {}): Pages<ApiKey> {
    return this.pages("/api/v1/keys", options);
  }

  /**
   * Revokes an API key at once.
   *
   * @example
   * ```ts
   * const { id } = await client.admin.createKey({ role: "viewer" });
   * console.log((await client.admin.revokeKey(id)).revoked); // true
   * ```
   */
  revokeKey(id: string, options: ChangeOptions = {}): Promise<RevokedApiKey> {
    return this.change("DELETE", `/api/v1/keys/${segment(id)}`, undefined, options);
  }

  /**
   * The record of an idempotency key: the first request with it, and how often it was repeated.
   *
   * @example
   * ```ts
   * await client.start("greet", { name: "Ada" }, { key: "greet-1" });
   * console.log((await client.admin.idempotencyKey("greet-1")).replays); // 0
   * ```
   */
  idempotencyKey(key: string, options: RequestOptions = {}): Promise<IdempotencyRecord> {
    return this.read(`/api/v1/idempotency-keys/${segment(key)}`, {}, options);
  }

  /**
   * Forgets an idempotency key: its next use is a new request.
   *
   * @example
   * ```ts
   * await client.start("greet", { name: "Ada" }, { key: "greet-2" });
   * await client.admin.releaseIdempotencyKey("greet-2");
   * ```
   */
  releaseIdempotencyKey(key: string, options: ChangeOptions = {}): Promise<IdempotencyRecord> {
    return this.change("DELETE", `/api/v1/idempotency-keys/${segment(key)}`, undefined, options);
  }

  /**
   * Who changed what, oldest first unless `order` says otherwise.
   *
   * @example
   * ```ts
   * const { items } = await client.admin.audit({ action: "tenant.*", order: "newest", limit: 5 }).page();
   * console.log(items.map((entry) => `${entry.actor} ${entry.action} ${entry.target}`));
   * ```
   */
  audit(
    options: ListOptions & { actor?: string; action?: string; after?: number; order?: "oldest" | "newest" } = {},
  ): Pages<AuditEntry> {
    return this.pages("/api/v1/audit", options);
  }

  /**
   * Checks that nobody changed the audit trail.
   *
   * @example
   * ```ts
   * console.log((await client.admin.verifyAudit()).ok); // true
   * ```
   */
  verifyAudit(options: RequestOptions = {}): Promise<AuditVerdict> {
    return this.read("/api/v1/audit/verify", {}, options);
  }

  /**
   * Checks the data.
   *
   * @example
   * ```ts
   * console.log((await client.admin.doctor()).ok); // true
   * ```
   */
  doctor(options: RequestOptions = {}): Promise<DoctorReport> {
    return this.read("/api/v1/doctor", {}, options);
  }

  /**
   * Rebuilds derived data.
   *
   * @example
   * ```ts
   * console.log((await client.admin.repair()).repaired); // 0
   * ```
   */
  repair(options: ChangeOptions = {}): Promise<RepairReport> {
    return this.change("POST", "/api/v1/doctor/repair", {}, options);
  }

  /**
   * The state of publishing to the bus, and the messages that are parked.
   *
   * @example
   * ```ts
   * console.log((await client.admin.outbox()).depth);
   * ```
   */
  outbox(options: ListOptions & { cursor?: string } = {}): Promise<Outbox> {
    const { signal, ...query } = options;
    return this.read("/api/v1/outbox", query, signal === undefined ? {} : { signal });
  }

  /**
   * Sends a parked message again, under the same id.
   *
   * @example
   * ```ts
   * for (const { message_id } of (await client.admin.outbox()).items) await client.admin.retryParked(message_id);
   * ```
   */
  retryParked(messageId: string, options: ChangeOptions = {}): Promise<Retrying> {
    return this.change("POST", `/api/v1/outbox/${segment(messageId)}/retry`, undefined, options);
  }
}
