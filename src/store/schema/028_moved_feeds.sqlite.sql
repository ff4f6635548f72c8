-- Tenants whose rows came from another store, and joined the feed of this one. Their clients hold positions of the feed that they come
-- from, so these tenants go on to count from there: a position is the number of a row minus `shift`.
CREATE TABLE moved_feeds (
    tenant INTEGER PRIMARY KEY,
    shift INTEGER NOT NULL,
    since INTEGER NOT NULL, -- their rows have greater numbers
    swept INTEGER NOT NULL, -- rows up to this position had been removed when they came
    published INTEGER NOT NULL, -- rows of theirs up to this number were published there
    fanned INTEGER NOT NULL, -- and given to webhooks
    fanned_seq INTEGER NOT NULL -- and of the row after that, the events up to this one
) STRICT;
