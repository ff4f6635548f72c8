-- What readers of the feed need to know of an event, so that they need not parse its data.
ALTER TABLE events ADD COLUMN job INTEGER; -- the ordinal of the job that the event makes claimable; null: none
-- The name that it is published under, where that is not its own: the type of an emitted event, the job's id of an approved job.
ALTER TABLE events ADD COLUMN published_as TEXT;

-- Only a job that is pending is offered, and each time that one becomes pending again it gets a new event.
UPDATE events SET job = j.ordinal FROM jobs j
    WHERE j.state = 'pending' AND events.run = j.run
    AND events.type IN ('job.created', 'job.approved', 'job.lease_expired', 'job.released', 'job.retried')
    AND replace(json_extract(events.data, '$.job_id'), '-', '') = lower(hex(j.id));

-- Events that may still be published: those that the feed has, and those that are parked.
UPDATE events SET published_as = json_extract(data, CASE type WHEN 'event.emitted' THEN '$.event' ELSE '$.job_id' END)
    FROM feed f WHERE events.run = f.run AND events.seq BETWEEN f.first_seq AND f.last_seq
    AND events.type IN ('event.emitted', 'job.approved');
UPDATE events SET published_as = json_extract(data, CASE events.type WHEN 'event.emitted' THEN '$.event' ELSE '$.job_id' END)
    FROM parked p WHERE events.run = p.run AND events.seq = p.seq
    AND events.type IN ('event.emitted', 'job.approved');
