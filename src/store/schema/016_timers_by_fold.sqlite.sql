-- Timers of jobs are written by fold (src/store/run/timers.h). The mark is a number of the feed: all timers of owners with
-- rows up to it are in the table.
INSERT INTO indexed (name, through) VALUES ('timers', max((SELECT COALESCE(max(num), 0) FROM feed),
    COALESCE((SELECT through FROM feed_marks WHERE name = 'swept'), 0)));
