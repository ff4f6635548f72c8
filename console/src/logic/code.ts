// Any request of the console as a program that does the same: with curl, in Python (requests) and in JavaScript (fetch).
import { curl, type Request } from "./curl";

export type Language = "curl" | "Python" | "JavaScript";
export const LANGUAGES: readonly Language[] = ["curl", "Python", "JavaScript"];

/** A JSON value as Python writes it. Only the constants differ; a text in JSON is also one in Python. */
export function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}: ${pythonOf(member)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

function python({ method, url, headers, body }: Request): string {
  const given = [
    JSON.stringify(url),
    ...(body === undefined ? [] : [`json=${pythonOf(body)}`]),
    ...(Object.keys(headers ?? {}).length === 0 ? [] : [`headers=${pythonOf(headers)}`]),
  ];
  return `import requests\n\nresponse = requests.${method.toLowerCase()}(${given.join(", ")})\nresponse.raise_for_status()\nprint(response.json())`;
}

function javascript({ method, url, headers, body }: Request): string {
  const all = { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers };
  const members = [
    ...(method === "GET" ? [] : [`  method: ${JSON.stringify(method)},`]),
    ...(Object.keys(all).length === 0 ? [] : [`  headers: ${JSON.stringify(all)},`]),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
  ];
  const options = members.length === 0 ? "" : `, {\n${members.join("\n")}\n}`;
  return `const response = await fetch(${JSON.stringify(url)}${options});\nif (!response.ok) throw new Error(await response.text());\nconsole.log(await response.json());`;
}

export function codeOf(request: Request, language: Language): string {
  switch (language) {
    case "curl":
      return curl(request);
    case "Python":
      return python(request);
    case "JavaScript":
      return javascript(request);
  }
}
