"""One schema in which the tables of all shards of a store are one: every_shard.runs has the runs of pawl_0.runs, pawl_1.runs and so on.
Numbers of rows are counted by each shard for itself, so here they have the shard's number before them: a join finds rows of one shard only."""

SHARD_STEP = 10**17  # between the numbers of one shard and the next; those of shard 0 stay as they are
NUMBERS = ("num", "tenant", "run", "entity", "owner", "parent", "parent_run", "scope", "line", "waits_for", "webhook", "type", "through", "key_num")

MAKE = f"""DO $$
DECLARE
    found record;
    parts text;
BEGIN
    CREATE SCHEMA every_shard;
    FOR found IN
        SELECT c.table_name AS name, string_agg(CASE
            WHEN c.data_type = 'bigint' AND c.column_name = ANY ('{{{",".join(NUMBERS)}}}')
            THEN format('CASE WHEN %1$I > 0 OR %1$L = ''through'' THEN %1$I + SHARD * {SHARD_STEP} ELSE %1$I END AS %1$I', c.column_name)
            WHEN c.column_name = 'scopes' -- a list of numbers: 3,17
            THEN '(SELECT coalesce(string_agg((n::bigint + SHARD * {SHARD_STEP})::text, '','' ORDER BY at), left(scopes, 0))'
                ' FROM unnest(string_to_array(scopes, '','')) WITH ORDINALITY AS parts (n, at)) AS scopes'
            ELSE format('%I', c.column_name) END, ', ' ORDER BY c.ordinal_position) AS columns
        FROM information_schema.columns c WHERE c.table_schema = 'pawl_0' GROUP BY c.table_name
    LOOP
        SELECT string_agg(format('SELECT %s FROM pawl_%s.%I', replace(found.columns, 'SHARD', shard::text), shard, found.name), ' UNION ALL ')
            INTO parts FROM pawl.shards;
        EXECUTE format('CREATE VIEW every_shard.%I AS %s', found.name, parts);
    END LOOP;
END $$"""


def shard_of(num):
    return num // SHARD_STEP
