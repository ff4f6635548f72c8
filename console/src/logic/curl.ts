// Any request of the console as a curl command that does the same in a terminal.

export interface Request {
  method: "GET" | "POST" | "PUT" | "DELETE";
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** The server asks for an API key: what is copied takes it from the environment. */
  withKey?: boolean;
  /** The same request to each of these as well, one after the other. */
  others?: readonly string[];
}

export const KEY_HEADER = "X-API-Key";
export const KEY_VARIABLE = "PAWL_API_KEY";

export const urlsOf = ({ url, others }: Request): string[] => [url, ...(others ?? [])];

/** In single quotes, as every POSIX shell reads it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curl(request: Request): string {
  const parts = ["curl"];
  const implied = request.body === undefined ? "GET" : "POST";
  if (request.method !== implied) parts.push("-X", request.method);
  if (request.withKey === true) parts.push("-H", `"${KEY_HEADER}: $${KEY_VARIABLE}"`);
  for (const [name, value] of Object.entries(request.headers ?? {})) parts.push("-H", quoted(`${name}: ${value}`));
  if (request.body !== undefined) parts.push("--json", quoted(JSON.stringify(request.body)));
  return urlsOf(request)
    .map((url) => [...parts, quoted(url)].join(" "))
    .join("\n");
}
