// A form for a run's input, made from the workflow's input_schema. Whatever the form has no field for is written as JSON.

export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

export interface Field {
  name: string;
  kind: FieldKind;
  required: boolean;
  title: string;
  help: string;
  choices: string[];
  initial: string;
  min?: number;
  max?: number;
}

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);

/** null: the input is no object with known members, so it is one field of JSON. */
export function fieldsOf(schema: unknown): Field[] | null {
  if (!isObject(schema) || !isObject(schema.properties)) return null;
  if (schema.type !== undefined && schema.type !== "object") return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(schema.properties).map(([name, member]) => fieldOf(name, isObject(member) ? member : {}, required.has(name)));
}

function kindOf(schema: Schema): FieldKind {
  const choices = schema.enum;
  if (Array.isArray(choices) && choices.every((c) => typeof c === "string")) return "choice";
  switch (schema.type) {
    case "string":
      return "text";
    case "number":
    case "integer":
    case "boolean":
      return schema.type;
    default:
      return "json";
  }
}

function fieldOf(name: string, schema: Schema, required: boolean): Field {
  const kind = kindOf(schema);
  const text = (member: string): string => (typeof schema[member] === "string" ? schema[member] : "");
  const initial = schema.default;
  const plain = typeof initial === "string" && kind !== "json";
  const field: Field = {
    name,
    kind,
    required,
    title: text("title") || name,
    help: text("description"),
    choices: kind === "choice" ? (schema.enum as string[]) : [],
    initial: initial === undefined ? "" : plain ? initial : JSON.stringify(initial),
  };
  if (typeof schema.minimum === "number") field.min = schema.minimum;
  if (typeof schema.maximum === "number") field.max = schema.maximum;
  return field;
}

export type Read = { ok: true; input: unknown } | { ok: false; faults: Record<string, string> };

/** The input that the fields describe. The server checks it against the whole schema; this finds only what cannot be sent. */
export function readForm(fields: readonly Field[], values: Readonly<Record<string, string>>): Read {
  const input: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const text = values[field.name] ?? field.initial;
    if (text === "" && !(field.kind === "text" && field.required)) {
      if (field.required) faults[field.name] = "Required";
      continue;
    }
    const value = readValue(field, text);
    if (value.ok) input[field.name] = value.input;
    else Object.assign(faults, value.faults);
  }
  return Object.keys(faults).length > 0 ? { ok: false, faults } : { ok: true, input };
}

function readValue(field: Field, text: string): Read {
  const fault = (message: string): Read => ({ ok: false, faults: { [field.name]: message } });
  switch (field.kind) {
    case "text":
    case "choice":
      return { ok: true, input: text };
    case "boolean":
      return { ok: true, input: text === "true" };
    case "integer":
    case "number": {
      const value = Number(text);
      if (text.trim() === "" || !Number.isFinite(value)) return fault("Not a number");
      if (field.kind === "integer" && !Number.isInteger(value)) return fault("Not a whole number");
      return { ok: true, input: value };
    }
    case "json":
      return readJson(field.name, text);
  }
}

export function readJson(name: string, text: string): Read {
  try {
    return { ok: true, input: JSON.parse(text) as unknown };
  } catch (e) {
    return { ok: false, faults: { [name]: `Not JSON: ${(e as Error).message}` } };
  }
}
