// Server-sent events as the HTML standard reads them, from pieces of text that may end anywhere.

export interface Message {
  id: string; // the last one that was sent, also before this message
  event: string;
  data: string;
}

export class SseParser {
  private rest = "";
  private id = "";
  private event = "";
  private data: string[] = [];

  /** The messages that this piece completes. */
  push(piece: string): Message[] {
    const lines = (this.rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.take(line));
  }

  private take(line: string): Message[] {
    if (line === "") return this.dispatch();
    if (line.startsWith(":")) return [];
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id" && !value.includes("\0")) this.id = value;
    if (name === "event") this.event = value;
    if (name === "data") this.data.push(value);
    return [];
  }

  private dispatch(): Message[] {
    const message = { id: this.id, event: this.event || "message", data: this.data.join("\n") };
    const isEmpty = this.data.length === 0;
    this.event = "";
    this.data = [];
    return isEmpty ? [] : [message];
  }
}
