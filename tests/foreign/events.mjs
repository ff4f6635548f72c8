// A reader of server-sent events that others wrote: it tells each event on a line of its own, comes back by itself when the
// connection breaks, and ends after so many. Started with one line of JSON: {url, headers, types, count}.
import { EventSource } from 'eventsource'
import { CloudEvent } from 'cloudevents'
import { createInterface } from 'node:readline'

for await (const line of createInterface({ input: process.stdin })) {
  const { url, headers, types, count } = JSON.parse(line)
  const source = new EventSource(url, {
    fetch: (target, init) => fetch(target, { ...init, headers: { ...init.headers, ...headers } }),
  })
  let left = count
  const tell = (message) => {
    const event = new CloudEvent(JSON.parse(message.data), true)
    console.log(JSON.stringify({ place: message.lastEventId, type: message.type, id: event.id, seq: event.data.seq }))
    if (--left === 0) {
      source.close()
      process.exit(0)
    }
  }
  for (const type of types) source.addEventListener(type, tell)
  source.addEventListener('open', () => console.log(JSON.stringify({ open: true })))
}
