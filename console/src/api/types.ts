// The API's types under short names. They come from docs/openapi.yaml; nothing here is written by hand.
import type { components } from "../../generated/schema";

type Schemas = components["schemas"];
export type Run = Schemas["Run"];
export type RunSummary = Schemas["RunSummary"];
export type RunStatus = Schemas["RunStatus"];
export type Step = Schemas["Step"];
export type JobState = Schemas["JobState"];
export type Job = Schemas["Job"];
export type RunEvent = Schemas["Event"];
export type Why = Schemas["Why"];
export type Approval = Schemas["Approval"];
export type ApprovalList = Schemas["ApprovalPage"];
export type ApprovalSummary = Schemas["ApprovalSummary"];
export type ApprovalStatus = Schemas["ApprovalStatus"];
export type DecisionRequest = Schemas["Decide"];
export type Decision = Schemas["Decision"];
export type Workflow = Schemas["Workflow"];
export type WorkflowHead = Schemas["WorkflowHead"];
export type StepDefinition = Schemas["StepDefinition"];
export type Tenant = Schemas["Tenant"];
export type Queue = Schemas["Queue"];
export type WorkerInfo = Schemas["Worker"];
export type IdempotencyRecord = Schemas["IdempotencyRecord"];
export type Readiness = Schemas["Readiness"];
export type Me = Schemas["Me"];
export type Problem = Schemas["Problem"];
