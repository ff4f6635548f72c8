// Judges deliveries as a receiver would: the signature by `standardwebhooks`, the event by `cloudevents`.
// On standard input {secrets, deliveries: [{headers, body}]}; on standard output one verdict each.
import { HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";

function signature({ headers, body }, secret) {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (refusal) {
    return refusal.message;
  }
}

function event({ headers, body }) {
  try {
    const parsed = HTTP.toEvent({ headers, body });
    return { valid: parsed.validate(), id: parsed.id, type: parsed.type, source: parsed.source, subject: parsed.subject, time: parsed.time, data: parsed.data };
  } catch (refusal) {
    return { valid: false, why: String(refusal.message), errors: refusal.errors ?? null };
  }
}

let text = "";
for await (const piece of process.stdin) text += piece;
const { secrets, deliveries } = JSON.parse(text);
const verdicts = deliveries.map((d) => ({ signatures: secrets.map((s) => signature(d, s)), event: event(d) }));
process.stdout.write(JSON.stringify(verdicts));
