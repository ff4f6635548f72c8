// Any request of the console as a curl command that does the same in a terminal.

export interface Request {
  method: "GET" | "POST" | "PUT" | "DELETE";
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** In single quotes, as every POSIX shell reads it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curl(request: Request): string {
  const parts = ["curl"];
  const implied = request.body === undefined ? "GET" : "POST";
  if (request.method !== implied) parts.push("-X", request.method);
  for (const [name, value] of Object.entries(request.headers ?? {})) parts.push("-H", quoted(`${name}: ${value}`));
  if (request.body !== undefined) parts.push("--json", quoted(JSON.stringify(request.body)));
  parts.push(quoted(request.url));
  return parts.join(" ");
}
