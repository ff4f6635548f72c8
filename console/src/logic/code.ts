// Any request of the console as a program that does the same: with curl, in Python (requests) and in JavaScript (fetch).
import { curl, KEY_HEADER, KEY_VARIABLE, urlsOf, type Request } from "./curl";

export type Language = "curl" | "Python" | "JavaScript";
export const LANGUAGES: readonly Language[] = ["curl", "Python", "JavaScript"];

const members = (entries: readonly string[]): string => `{${entries.join(", ")}}`;

/** A JSON value as Python writes it. Only the constants differ; a text in JSON is also one in Python. */
export function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return members(Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${pythonOf(member)}`));
  return JSON.stringify(value);
}

/** Of an object with headers, each as source text; `key` is how the language reads the API key. */
function headersOf({ headers, withKey }: Request, key: string): string[] {
  const given = Object.entries(headers ?? {}).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return withKey === true ? [...given, `${JSON.stringify(KEY_HEADER)}: ${key}`] : given;
}

function python(request: Request): string {
  const { method, body, withKey } = request;
  const urls = urlsOf(request);
  const headers = headersOf(request, `os.environ[${JSON.stringify(KEY_VARIABLE)}]`);
  const given = [
    urls.length > 1 ? "url" : pythonOf(urls[0]),
    ...(body === undefined ? [] : [`json=${pythonOf(body)}`]),
    ...(headers.length === 0 ? [] : [`headers=${members(headers)}`]),
  ];
  const call = `requests.${method.toLowerCase()}(${given.join(", ")})`;
  const start = `${withKey === true ? "import os\n\n" : ""}import requests\n\n`;
  if (urls.length > 1) return `${start}for url in ${pythonOf(urls)}:\n    ${call}.raise_for_status()`;
  return `${start}response = ${call}\nresponse.raise_for_status()\nprint(response.json())`;
}

function javascript(request: Request): string {
  const { method, body } = request;
  const urls = urlsOf(request);
  const headers = [...(body === undefined ? [] : ['"Content-Type": "application/json"']), ...headersOf(request, `process.env.${KEY_VARIABLE}`)];
  const options = [
    ...(method === "GET" ? [] : [`method: ${JSON.stringify(method)},`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(", ")} },`]),
    ...(body === undefined ? [] : [`body: JSON.stringify(${JSON.stringify(body)}),`]),
  ];
  const call = (url: string, indent: string): string =>
    `${indent}const response = await fetch(${url}${options.length === 0 ? "" : `, {\n${options.map((line) => `${indent}  ${line}\n`).join("")}${indent}}`});\n` +
    `${indent}if (!response.ok) throw new Error(await response.text());\n`;
  if (urls.length > 1) return `for (const url of ${JSON.stringify(urls)}) {\n${call("url", "  ")}}`;
  return `${call(JSON.stringify(urls[0]), "")}console.log(await response.json());`;
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
