// Writes src/wire.ts, the types of everything that crosses the wire, from docs/openapi.yaml.
// The file is not in the repository: tools/build.mjs makes it before it compiles.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const SPEC = fileURLToPath(new URL("../../../docs/openapi.yaml", import.meta.url));
const TARGET = fileURLToPath(new URL("../src/wire.ts", import.meta.url));

// Names that the library gives to something else, or that would hide a global of the language.
const RENAMED = { Event: "RunEvent", Worker: "WorkerInfo", Workflow: "StoredWorkflow", Step: "StepState" };
// Definitions are written by people, so definition.ts describes them more exactly than the schema does.
const LEFT_OUT = new Set(["Definition", "StepDefinition", "Id", "Time", "Name", "TenantName", "TenantScope", "Hash"]);

const nameOf = (ref) => {
  const name = ref.split("/").at(-1);
  return RENAMED[name] ?? name;
};

function typeOf(schema) {
  if (schema === true || Object.keys(schema).every((k) => k === "description")) return "unknown";
  if (schema.$ref !== undefined) return refType(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined && schema.properties === undefined) return unionOf(choices.map(typeOf));
  if (schema.allOf !== undefined && schema.properties === undefined) return schema.allOf.map(typeOf).join(" & ");
  if (Array.isArray(schema.type)) return unionOf(schema.type.map((type) => typeOf({ ...schema, type })));
  return plainType(schema);
}

function unionOf(types) {
  const distinct = [...new Set(types)];
  return distinct.includes("unknown") ? "unknown" : distinct.join(" | ");
}

function refType(ref) {
  const name = nameOf(ref);
  return LEFT_OUT.has(name) && !name.endsWith("Definition") ? "string" : name;
}

function plainType(schema) {
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return arrayOf(schema.items === undefined ? "unknown" : typeOf(schema.items));
    default:
      return objectType(schema);
  }
}

const arrayOf = (type) => (/^\w+$/.test(type) ? `${type}[]` : `Array<${type}>`);

function objectType(schema) {
  if (schema.properties === undefined) {
    const values = schema.additionalProperties;
    return `Record<string, ${typeof values === "object" ? typeOf(values) : "unknown"}>`;
  }
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(([name, member]) => {
    const doc = member.description === undefined ? "" : comment(member.description);
    return `${doc}${name}${required.has(name) ? "" : "?"}: ${typeOf(member)};`;
  });
  return `{${members.join("\n")}}`;
}

const comment = (text) => `/** ${sentence(text).replaceAll("*/", "* /").replaceAll("\n", " ").trim()} */\n`;

function sentence(text) {
  const capital = text[0].toUpperCase() + text.slice(1);
  return /[.:!?]$/.test(capital) ? capital : `${capital}.`;
}

function declaration(name, schema) {
  const doc = schema.description === undefined ? "" : comment(schema.description);
  const type = typeOf(schema);
  const isObject = type.startsWith("{") && schema.type === "object";
  const shown = RENAMED[name] ?? name;
  return isObject ? `${doc}export interface ${shown} ${type}` : `${doc}export type ${shown} = ${type};`;
}

const spec = parse(readFileSync(SPEC, "utf8"));
const declarations = Object.entries(spec.components.schemas)
  .filter(([name]) => !LEFT_OUT.has(name))
  .map(([name, schema]) => declaration(name, schema));
const head = `// Made from docs/openapi.yaml by tools/generate.mjs. Do not edit.\n
import type { Definition } from "./definition.js";\n\n`;
// In one step: a program that reads the file meanwhile has the old one or the new one.
writeFileSync(`${TARGET}.${process.pid}`, `${head}${declarations.join("\n\n")}\n`);
renameSync(`${TARGET}.${process.pid}`, TARGET);
