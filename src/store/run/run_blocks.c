/* The index of runs by tenant, in blocks. */
#include "store/run/run_blocks.h"

/* A distance has 18 digits at most, and a comma follows it. */
enum { DISTANCE_DIGITS_MAX = 18, BLOCK_TEXT_MAX = 1 + BLOCK_RUNS_MAX * (DISTANCE_DIGITS_MAX + 1) };

/* The text of a run that is alone in its block, which is kept as null. */
#define ALONE ",0,"

/* --- writing --- */

struct block {
    int64_t tenant;
    int64_t num;
    size_t len;
    char text[BLOCK_TEXT_MAX];
};

static void put_run(struct block *b, int64_t num)
{
    char digits[DISTANCE_DIGITS_MAX];
    size_t from = sizeof(digits);
    int64_t distance = num - b->num;
    assert(distance >= 0 && distance <= INT64_C(999999999999999999));
    do {
        digits[--from] = (char)('0' + distance % 10);
        distance /= 10;
    } while (distance > 0);
    memcpy(b->text + b->len, digits + from, sizeof(digits) - from);
    b->len += sizeof(digits) - from;
    b->text[b->len++] = ',';
}

/* The first block of these runs. Returns how many are in it. */
static size_t make_block(struct block *b, const struct indexed_run *runs, size_t count)
{
    assert(count > 0);
    size_t taken = 0;
    b->tenant = runs[0].tenant;
    b->num = runs[0].num;
    b->text[0] = ',';
    b->len = 1;
    for (; taken < MIN(count, BLOCK_RUNS_MAX) && runs[taken].tenant == b->tenant; taken++)
        put_run(b, runs[taken].num);
    return taken;
}

/* Statements with many rows: most of the cost of one with a single row is not the row's. */
enum { BLOCKS_TOGETHER = 12, BLOCK_COLUMNS = 3 };

static enum err insert_blocks(struct db *db, const struct block *blocks, size_t count)
{
#define INSERT "INSERT INTO run_blocks (tenant, num, runs) VALUES ($1, $2, $3)"
    static const char SQL[] = INSERT;
    static const char SQL_TOGETHER[] =
        INSERT ", ($4, $5, $6), ($7, $8, $9), ($10, $11, $12), ($13, $14, $15), ($16, $17, $18),"
               " ($19, $20, $21), ($22, $23, $24), ($25, $26, $27), ($28, $29, $30),"
               " ($31, $32, $33), ($34, $35, $36)";
#undef INSERT
    struct db_value values[BLOCKS_TOGETHER * BLOCK_COLUMNS];
    for (size_t i = 0; i < count; i++) {
        struct str text = {blocks[i].text, blocks[i].len};
        values[i * BLOCK_COLUMNS] = DB_I(blocks[i].tenant);
        values[i * BLOCK_COLUMNS + 1] = DB_I(blocks[i].num);
        values[i * BLOCK_COLUMNS + 2] = str_is(text, ALONE) ? DB_N() : DB_T(text);
    }
    if (count == BLOCKS_TOGETHER)
        return db_exec_values(db, SQL_TOGETHER, values, ARRAY_LEN(values), NULL);
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = db_exec_values(db, SQL, &values[i * BLOCK_COLUMNS], BLOCK_COLUMNS, NULL);
    return e;
}

enum err run_blocks_add(struct db *db, const struct indexed_run *runs, size_t count)
{
    struct block blocks[BLOCKS_TOGETHER];
    enum err e = ERR_OK;
    for (size_t done = 0; done < count && e == ERR_OK;) {
        size_t made = 0;
        for (; made < BLOCKS_TOGETHER && done < count; made++)
            done += make_block(&blocks[made], runs + done, count - done);
        e = insert_blocks(db, blocks, made);
    }
    return e;
}

/* --- changing --- */

/* The block that run $2 of tenant $1 is in. */
#define IS_ITS_BLOCK                                              \
    "tenant = $1 AND num = (SELECT b.num FROM run_blocks b WHERE" \
    " b.tenant = $1 AND b.num <= $2 ORDER BY b.num DESC LIMIT 1)"

enum err run_blocks_remove(struct db *db, int64_t tenant, int64_t run)
{
    static const char SQL_ALONE[] =
        "DELETE FROM run_blocks WHERE tenant = $1 AND num = $2 AND runs IS NULL";
    static const char SQL[] = "UPDATE run_blocks SET runs = replace(runs, ',' ||"
                              " CAST($2 - num AS TEXT) || ',', ',') WHERE " IS_ITS_BLOCK;
    static const char SQL_EMPTY[] = "DELETE FROM run_blocks WHERE runs = ',' AND " IS_ITS_BLOCK;
    enum err e = DB_EXEC(db, SQL_ALONE, NULL, DB_I(tenant), DB_I(run));
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_I(run));
    return e == ERR_OK ? DB_EXEC(db, SQL_EMPTY, NULL, DB_I(tenant), DB_I(run)) : e;
}

enum err run_blocks_clear(struct db *db)
{
    return db_exec_values(db, "DELETE FROM run_blocks", NULL, 0, NULL);
}

/* --- reading --- */

struct block_reader {
    struct str text;
    size_t at;   /* behind the comma before the next run */
    int64_t num; /* of the block */
};

/* The next run. False at the end, and when the text is damaged, of which something is left then. */
static bool next_run(struct block_reader *r, int64_t *num)
{
    const char *begin = r->text.ptr + r->at;
    const char *end = r->text.ptr + r->text.len;
    const char *c = begin;
    int64_t distance = 0;
    while (c < end && c - begin < DISTANCE_DIGITS_MAX && *c >= '0' && *c <= '9')
        distance = distance * 10 + (*c++ - '0');
    if (c == begin || c == end || *c != ',')
        return false;
    r->at += (size_t)(c + 1 - begin);
    *num = r->num + distance;
    return true;
}

/* The runs of a row that the walk passes, in their rising order. Returns how many. */
static size_t read_block(struct db_rows *rows, const struct run_walk *walk, int64_t *nums)
{
    struct str text = db_is_null(rows, 1) ? STR(ALONE) : db_str(rows, 1);
    struct block_reader r = {text, 1, db_count(rows, 0)};
    int64_t num;
    size_t count = 0;
    if (text.len == 0 || text.ptr[0] != ',') {
        db_damaged(rows, 1);
        return 0;
    }
    for (size_t all = 0; all < BLOCK_RUNS_MAX && next_run(&r, &num); all++) {
        if (walk->down ? num < walk->from : num > walk->from)
            nums[count++] = num;
    }
    if (r.at < text.len)
        db_damaged(rows, 1);
    return count;
}

static struct db_rows *blocks_slice(struct db *db, const struct run_walk *walk, int64_t limit)
{
    /* Upwards the first one is the block that the walk has come to. */
    static const char SQL_UP[] =
        "SELECT num, runs FROM run_blocks WHERE tenant = $1 AND num >= COALESCE((SELECT b.num"
        " FROM run_blocks b WHERE b.tenant = $1 AND b.num <= $2 ORDER BY b.num DESC LIMIT 1), 0)"
        " ORDER BY num LIMIT $3";
    static const char SQL_DOWN[] = "SELECT num, runs FROM run_blocks WHERE tenant = $1"
                                   " AND num < $2 ORDER BY num DESC LIMIT $3";
    return DB_QUERY(db, walk->down ? SQL_DOWN : SQL_UP, DB_I(walk->tenant), DB_I(walk->from),
                    DB_I(limit));
}

/* Blocks that are read at once: an engine across a network fetches them all. */
enum { BLOCKS_PER_SLICE = 16 };

enum err run_blocks_list(struct db *db, const struct run_walk *walk, int64_t *nums, size_t room,
                         size_t *ret_count)
{
    struct run_walk w = *walk;
    size_t count = 0;
    int64_t limit = (int64_t)MIN(room + 1, BLOCKS_PER_SLICE);
    int64_t blocks;
    enum err e;
    do {
        struct db_rows *rows = blocks_slice(db, &w, limit);
        int64_t block = w.from;
        for (blocks = 0; count < room && db_next(rows); blocks++) {
            int64_t found[BLOCK_RUNS_MAX];
            size_t of_block = read_block(rows, &w, found);
            for (size_t i = 0; i < of_block && count < room; i++)
                nums[count++] = found[w.down ? of_block - 1 - i : i];
            block = db_count(rows, 0);
        }
        e = db_rows_end(rows);
        /* On from the last block, and upwards from the last run that was taken of it. */
        w.from = w.down || count == 0 ? block : MAX(block, nums[count - 1]);
    } while (e == ERR_OK && count < room && blocks == limit);
    *ret_count = count;
    return e;
}
