/** Stored workflows. */

import { Workflow, type Definition } from "../definition.js";
import type { PutWorkflowResult, StoredWorkflow, ValidationReport, WorkflowHead, WorkflowVersion } from "../wire.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

/** The routes of workflows: `client.workflows`. */
export class Workflows extends Resource {
  /**
   * Stores a definition. A changed one makes a new version, an equal one does not.
   *
   * @example
   * ```ts
   * const { version } = await client.workflows.put("nap", { steps: [{ name: "nap", type: "sleep", duration_ms: 1 }] });
   * console.log(version); // 1
   * ```
   */
  put(id: string, definition: Definition | Workflow, options: ChangeOptions = {}): Promise<PutWorkflowResult> {
    return this.change("PUT", `/api/v1/workflows/${segment(id)}`, plainDefinition(definition), options);
  }

  /**
   * One version with its definition; the newest unless you name one.
   *
   * @example
   * ```ts
   * console.log((await client.workflows.get("greet")).definition.steps.length);
   * ```
   */
  get(id: string, { version, ...options }: RequestOptions & { version?: number } = {}): Promise<StoredWorkflow> {
    return this.read(`/api/v1/workflows/${segment(id)}`, { version }, options);
  }

  /**
   * The workflows by id, archived ones included.
   *
   * @example
   * ```ts
   * for await (const { id, version } of client.workflows.list()) console.log(id, version);
   * ```
   */
  list(options: ListOptions = {}): Pages<WorkflowHead> {
    return this.pages("/api/v1/workflows", options);
  }

  /**
   * The versions of a workflow, newest first.
   *
   * @example
   * ```ts
   * const [newest] = await client.workflows.versions("greet").all();
   * console.log(newest?.created_by); // dev
   * ```
   */
  versions(id: string, options: ListOptions = {}): Pages<WorkflowVersion> {
    return this.pages(`/api/v1/workflows/${segment(id)}/versions`, options);
  }

  /**
   * What is wrong with a definition, without storing it.
   *
   * @example
   * ```ts
   * const report = await client.workflows.validate("w", { steps: [{ name: "a", type: "task" }] });
   * console.log(report.valid, report.errors[0]?.path); // false /steps/0 …
   * ```
   */
  validate(id: string, definition: Definition | Workflow, options: RequestOptions = {}): Promise<ValidationReport> {
    const path = `/api/v1/workflows/${segment(id)}/validate`;
    const body = plainDefinition(definition);
    const request = { method: "POST" as const, path, body, signal: options.signal };
    return this.transport.send<ValidationReport>(request).then((answer) => answer.body);
  }

  /**
   * Archives a workflow: it starts no new runs, existing ones continue. Storing it again restores it.
   *
   * @example
   * ```ts
   * await client.workflows.put("old", { steps: [{ name: "a", type: "sleep", duration_ms: 1 }] });
   * console.log((await client.workflows.archive("old")).archived); // true
   * ```
   */
  archive(id: string, options: ChangeOptions = {}): Promise<WorkflowHead> {
    return this.change("DELETE", `/api/v1/workflows/${segment(id)}`, undefined, options);
  }
}

function plainDefinition(definition: Definition | Workflow): Definition {
  return definition instanceof Workflow ? definition.definition : definition;
}
