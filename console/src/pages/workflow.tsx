// One workflow: its steps, its definition, and a form that starts a run.
import { useMemo, useRef, useState } from "preact/hooks";
import { api, Failure, must, newKey, requestOf } from "../api/client";
import type { Step, Workflow } from "../api/types";
import { fieldsOf, readForm, readJson, type Field, type Read } from "../logic/form";
import { go, href, query } from "../router";
import { Allowed } from "../ui/allowed";
import { Card, CopyAs, Json, Loading, PageHead, ProblemBox, say } from "../ui/bits";
import { Graph } from "../ui/graph";
import { useLoad, useTitle, useWide } from "../ui/hooks";
import { Versions } from "./workflow_versions";

interface FieldProps {
  field: Field;
  value: string;
  fault: string | undefined;
  onInput: (text: string) => void;
}

function Control({ field, value, fault, onInput }: FieldProps) {
  const id = `field-${field.name}`;
  const shared = {
    id,
    value,
    "aria-invalid": fault !== undefined,
    "aria-describedby": `${id}-help`,
    onInput: (e: Event) => onInput((e.currentTarget as HTMLInputElement).value),
  };
  switch (field.kind) {
    case "boolean":
    case "choice": {
      const choices = field.kind === "boolean" ? ["true", "false"] : field.choices;
      return (
        <select {...shared}>
          <option value="">–</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      );
    }
    case "number":
    case "integer":
      return <input {...shared} type="number" step={field.kind === "integer" ? 1 : "any"} min={field.min} max={field.max} />;
    case "json":
      return <textarea {...shared} rows={3} spellcheck={false} placeholder="JSON" />;
    default:
      return <input {...shared} />;
  }
}

function FormField(props: FieldProps) {
  const { field, fault } = props;
  return (
    <div class="field">
      <label for={`field-${field.name}`}>
        {field.title} {field.required && <span class="faint">(required)</span>}
      </label>
      <Control {...props} />
      <span id={`field-${field.name}-help`} class={fault === undefined ? "faint" : "fault"}>
        {fault ?? field.help}
      </span>
    </div>
  );
}

const WHOLE = "input"; // the field of an input that has no form

function StartForm({ workflow }: { workflow: Workflow }) {
  const schema = workflow.definition.input_schema;
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const whole: Field = { name: WHOLE, kind: "json", required: false, title: "Input", help: "Any JSON value", choices: [], initial: "{}" };
  const shown = fields ?? [whole];
  const [values, setValues] = useState<Record<string, string>>({});
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<Failure | null>(null);
  const [key, setKey] = useState("");
  const made = useRef(newKey());
  /** Another input is another start: it gets another key. */
  const change = (name: string, text: string): void => {
    made.current = newKey();
    setValues((old) => ({ ...old, [name]: text }));
  };
  const read = (): Read => (fields === null ? readJson(WHOLE, values[WHOLE] ?? whole.initial) : readForm(fields, values));
  const input = read();
  const submit = (event: Event): void => {
    event.preventDefault();
    const got = read();
    setFaults(got.ok ? {} : got.faults);
    if (!got.ok) return;
    const params = { path: { workflow_id: workflow.id }, header: { "Idempotency-Key": key || made.current } };
    must(api.POST("/api/v1/workflows/{workflow_id}/runs", { params, body: { input: got.input } })).then(
      (started) => {
        say(started.created ? "The run has started" : "This key had already started this run; nothing happened twice");
        go(href("runs", started.run_id));
      },
      (e: unknown) => setFailure(e as Failure),
    );
  };
  return (
    <Card title="Start a run">
      <form class="start" onSubmit={submit}>
        {shown.map((field) => (
          <FormField
            key={field.name}
            field={field}
            value={values[field.name] ?? field.initial}
            fault={faults[field.name]}
            onInput={(text) => change(field.name, text)}
          />
        ))}
        <div class="field">
          <label for="start-key">Idempotency key</label>
          <input
            id="start-key"
            value={key}
            maxLength={255}
            spellcheck={false}
            aria-describedby="start-key-help"
            onInput={(e) => setKey(e.currentTarget.value)}
          />
          <span id="start-key-help" class="faint">
            The same key never starts a second run. Empty: a new one for this form.
          </span>
        </div>
        {failure !== null && <ProblemBox failure={failure} />}
        <div class="actions">
          <button class="primary">Start</button>
          <CopyAs request={requestOf("POST", `workflows/${encodeURIComponent(workflow.id)}/runs`, input.ok ? { input: input.input } : {})} />
        </div>
      </form>
    </Card>
  );
}

const NO_STATES = new Map<string, Step>(); // of a workflow that does not run

export function WorkflowPage({ id }: { id: string }) {
  useTitle(id);
  const { data: workflow, failure, reload } = useLoad(() => must(api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: id } } })), [id]);
  const wide = useWide(900);
  const selected = query.value.get("step");
  const step = workflow?.definition.steps.find((s) => s.name === selected);
  if (workflow === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={reload} />;
  return (
    <>
      <PageHead title={workflow.id}>
        <span class="faint">version {workflow.version}</span>
        <a href={`${href("runs")}?workflow=${encodeURIComponent(id)}`}>Runs</a>
        <CopyAs request={requestOf("GET", `workflows/${encodeURIComponent(id)}`)} />
      </PageHead>
      {workflow.definition.description !== undefined && <p class="lead">{workflow.definition.description}</p>}
      <Card title="Steps">
        <Graph
          steps={workflow.definition.steps}
          states={NO_STATES}
          direction={wide ? "LR" : "TB"}
          selected={selected}
          onSelect={(name) => go(href("workflows", id) + (selected === name ? "" : `?step=${encodeURIComponent(name)}`), true)}
        />
        {step !== undefined && (
          <section class="step" aria-label={`Step ${step.name}`}>
            <h3>{step.name}</h3>
            <Json value={step} label={`Definition of ${step.name}`} />
          </section>
        )}
      </Card>
      {!workflow.archived && (
        <Allowed to="run" what="starting runs">
          <StartForm workflow={workflow} />
        </Allowed>
      )}
      <Versions id={id} />
      <Card title="Definition">
        <Json value={workflow.definition} label="Definition" />
      </Card>
    </>
  );
}
