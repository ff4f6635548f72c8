/* Disks: names, handles, mounts and crashes. */
#include "sim/crash_disk.h"

static struct crash_disk *mounted;

/* --- disks --- */

struct crash_disk *crash_disk_new(void)
{
    struct crash_disk *disk = must(calloc(1, sizeof(*disk)));
    disk->options.powersafe_overwrite = true;
    return disk;
}

static struct inode *copied(struct inode *from, struct crash_disk *disk)
{
    if (from == NULL)
        return NULL;
    if (from->copy == NULL)
        from->copy = inode_copy(from, disk);
    from->copy->refs++;
    return from->copy;
}

static void copy_files(struct crash_disk *disk, const struct crash_disk *from)
{
    struct entry **end = &disk->entries;
    for (const struct entry *e = from->entries; e != NULL; e = e->next) {
        *end = must(calloc(1, sizeof(**end)));
        (*end)->name = must(strdup(e->name));
        (*end)->now = copied(e->now, disk);
        (*end)->durable = copied(e->durable, disk);
        (*end)->seq = e->seq;
        end = &(*end)->next;
    }
    for (struct inode *inode = from->inodes; inode != NULL; inode = inode->next)
        inode->copy = NULL;
    disk->seq = from->seq;
}

struct crash_disk *crash_disk_copy(const struct crash_disk *from)
{
    struct crash_disk *disk = crash_disk_new();
    copy_files(disk, from);
    return disk;
}

static void detach_all(struct crash_disk *disk)
{
    for (struct inode *inode = disk->inodes; inode != NULL;) {
        inode->refs++; /* it stays while we are at it */
        while (inode->handles != NULL)
            handle_detach(inode->handles);
        shm_release(inode->shm);
        inode->shm = NULL;
        struct inode *next = inode->next;
        inode_release(inode);
        inode = next;
    }
}

static void drop_files(struct crash_disk *disk)
{
    detach_all(disk);
    while (disk->entries != NULL) {
        struct entry *e = disk->entries;
        disk->entries = e->next;
        inode_release(e->now);
        inode_release(e->durable);
        free(e->name);
        free(e);
    }
    assert(disk->inodes == NULL);
}

void crash_disk_become(struct crash_disk *disk, const struct crash_disk *other)
{
    drop_files(disk);
    copy_files(disk, other);
}

void crash_disk_free(struct crash_disk *disk)
{
    if (disk == NULL)
        return;
    drop_files(disk);
    crash_disk_mount(disk, NULL);
    free(disk);
}

void crash_disk_mount(struct crash_disk *disk, const char *folder)
{
    if (disk->folder != NULL) {
        struct crash_disk **at = &mounted;
        while (*at != disk)
            at = &(*at)->next;
        *at = disk->next;
        free(disk->folder);
        disk->folder = NULL;
    }
    if (folder == NULL)
        return;
    assert(folder[0] == '/' && folder[strlen(folder) - 1] == '/');
    disk->folder = must(strdup(folder));
    disk->next = mounted;
    mounted = disk;
}

struct crash_disk *disk_of_path(const char *path, const char **ret_name)
{
    for (struct crash_disk *disk = mounted; path != NULL && disk != NULL; disk = disk->next) {
        size_t len = strlen(disk->folder);
        if (strncmp(path, disk->folder, len) == 0) {
            *ret_name = path + len;
            return disk;
        }
    }
    return NULL;
}

void crash_disk_set_options(struct crash_disk *disk, const struct crash_options *options)
{
    disk->options = *options;
}

/* --- names --- */

struct entry *disk_find(const struct crash_disk *disk, const char *name)
{
    struct entry *e = disk->entries;
    while (e != NULL && strcmp(e->name, name) != 0)
        e = e->next;
    return e;
}

static struct entry *add_entry(struct crash_disk *disk, const char *name)
{
    struct entry *e = must(calloc(1, sizeof(*e)));
    e->name = must(strdup(name));
    struct entry **end = &disk->entries;
    while (*end != NULL)
        end = &(*end)->next;
    *end = e;
    return e;
}

static void set_now(struct crash_disk *disk, struct entry *e, struct inode *inode)
{
    if (inode != NULL)
        inode->refs++;
    inode_release(e->now);
    e->now = inode;
    e->seq = ++disk->seq;
}

static void set_durable(struct entry *e, struct inode *inode)
{
    if (inode != NULL)
        inode->refs++;
    inode_release(e->durable);
    e->durable = inode;
}

struct entry *disk_create(struct crash_disk *disk, struct entry *e, const char *name)
{
    if (e == NULL)
        e = add_entry(disk, name);
    assert(e->now == NULL);
    set_now(disk, e, inode_new(disk));
    return e;
}

void disk_delete(struct crash_disk *disk, struct entry *e)
{
    set_now(disk, e, NULL);
}

void disk_sync_names(struct crash_disk *disk)
{
    for (struct entry *e = disk->entries; e != NULL; e = e->next)
        set_durable(e, e->now);
}

void disk_sync_name(struct crash_disk *disk, const struct inode *inode)
{
    for (struct entry *e = disk->entries; e != NULL; e = e->next) {
        if (e->now == inode)
            set_durable(e, e->now);
    }
}

/* --- handles --- */

void handle_attach(struct crash_handle *h, struct crash_disk *disk, struct entry *e)
{
    assert(e->now != NULL);
    h->disk = disk;
    h->entry = e;
    h->inode = e->now;
    h->inode->refs++;
    h->next = h->inode->handles;
    h->inode->handles = h;
}

void handle_detach(struct crash_handle *h)
{
    if (h->inode == NULL)
        return;
    struct crash_handle **at = &h->inode->handles;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    inode_release(h->inode);
    h->inode = NULL;
    h->disk = NULL;
    h->entry = NULL;
    h->lock = SQLITE_LOCK_NONE;
    h->shm_shared = h->shm_exclusive = 0;
}

/* --- crashes --- */

static void stop(struct crash_disk *disk)
{
    detach_all(disk);
    disk->down = true;
}

void crash_disk_kill(struct crash_disk *disk)
{
    disk->counts.kills++;
    stop(disk);
}

static void count_unsynced(struct crash_disk *disk, struct cut *cut, uint64_t *ret_first)
{
    uint64_t bytes = 0;
    uint64_t changes = 0;
    *ret_first = disk->seq + 1;
    for (const struct inode *inode = disk->inodes; inode != NULL; inode = inode->next) {
        for (size_t i = 0; i < inode->change_count; i++) {
            const struct change *c = &inode->changes[i];
            *ret_first = MIN(*ret_first, c->seq);
            if (!c->is_truncation)
                cut->last = MAX(cut->last, c->seq);
        }
        changes += inode->change_count;
        bytes += inode->images_len;
    }
    for (const struct entry *e = disk->entries; e != NULL; e = e->next) {
        if (e->now == e->durable)
            continue;
        changes++;
        *ret_first = MIN(*ret_first, e->seq);
    }
    disk->counts.unsynced_bytes_at_cut = bytes;
    disk->counts.unsynced_changes_at_cut = changes;
}

static void cut_name(struct crash_disk *disk, struct entry *e, const struct cut *cut)
{
    if (e->now == e->durable)
        return;
    bool keep = cut->how == CRASH_CUT_KEEP || cut->how == CRASH_CUT_TORN_LAST ||
                (cut->how == CRASH_CUT_PREFIX && e->seq < cut->prefix) ||
                (cut->how == CRASH_CUT_RANDOM && cut->draw(cut->ctx, 2) == 1);
    if (keep)
        set_durable(e, e->now);
    else
        set_now(disk, e, e->durable);
}

void crash_disk_cut(struct crash_disk *disk, enum crash_cut how, crash_draw *draw, void *ctx)
{
    stop(disk);
    struct cut cut = {.how = how, .draw = draw, .ctx = ctx};
    if (how == CRASH_CUT_ANY)
        cut.how = (enum crash_cut)draw(ctx, CRASH_CUT_ANY);
    cut.powersafe = disk->options.powersafe_overwrite;
    uint64_t first = 0;
    disk->counts.cuts++;
    count_unsynced(disk, &cut, &first);
    if (cut.how == CRASH_CUT_PREFIX)
        cut.prefix = first + draw(ctx, disk->seq + 2 - first);
    for (struct entry *e = disk->entries; e != NULL; e = e->next)
        cut_name(disk, e, &cut);
    for (struct inode *inode = disk->inodes; inode != NULL; inode = inode->next)
        inode_cut(inode, &cut);
}

bool crash_disk_is_down(const struct crash_disk *disk)
{
    return disk->down;
}

void crash_disk_restart(struct crash_disk *disk)
{
    disk->down = false;
    disk->sync_failed = false;
}

/* --- watching --- */

const struct crash_counts *crash_disk_counts(const struct crash_disk *disk)
{
    return &disk->counts;
}

bool crash_disk_is_synced(const struct crash_disk *disk, const char *name)
{
    for (const struct entry *e = disk->entries; e != NULL; e = e->next) {
        bool asked = name == NULL || strcmp(e->name, name) == 0;
        if (asked && (e->now != e->durable || (e->now != NULL && e->now->change_count > 0)))
            return false;
    }
    return true;
}

int64_t crash_disk_bytes(const struct crash_disk *disk)
{
    int64_t bytes = 0;
    for (const struct entry *e = disk->entries; e != NULL; e = e->next)
        bytes += e->now != NULL ? e->now->size : 0;
    return bytes;
}

void crash_disk_files(const struct crash_disk *disk,
                      void (*found)(void *ctx, const char *name, int64_t size), void *ctx)
{
    for (const struct entry *e = disk->entries; e != NULL; e = e->next) {
        if (e->now != NULL)
            found(ctx, e->name, e->now->size);
    }
}

const char *crash_disk_read_file(const struct crash_disk *disk, const char *name, size_t *ret_len)
{
    const struct entry *e = disk_find(disk, name);
    if (e == NULL || e->now == NULL)
        return NULL;
    *ret_len = (size_t)e->now->size;
    return e->now->bytes;
}

void crash_disk_write_file(struct crash_disk *disk, const char *name, const void *bytes, size_t len)
{
    struct entry *e = disk_find(disk, name);
    if (e == NULL || e->now == NULL)
        e = disk_create(disk, e, name);
    inode_resize(e->now, 0);
    inode_write(e->now, bytes, (int64_t)len, 0);
    inode_sync(e->now, disk->seq);
    disk_sync_name(disk, e->now);
}
