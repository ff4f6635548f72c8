/* Contents of a file on a crash disk, and the changes since its last sync. */
#include "sim/crash_disk.h"

#include <sys/mman.h>

/* Addresses, not memory: pages come when they are written, and no file is copied as it grows. */
enum { FILE_BYTES_MAX = 512 * 1024 * 1024 };

static char *new_room(void)
{
    void *room = mmap(NULL, FILE_BYTES_MAX, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        abort();
    return room;
}

static void free_room(char *room)
{
    if (munmap(room, FILE_BYTES_MAX) != 0)
        abort();
}

struct inode *inode_new(struct crash_disk *disk)
{
    struct inode *inode = must(calloc(1, sizeof(*inode)));
    inode->disk = disk;
    inode->bytes = new_room();
    inode->images = new_room();
    struct inode **end = &disk->inodes;
    while (*end != NULL)
        end = &(*end)->next;
    *end = inode;
    return inode;
}

void inode_release(struct inode *inode)
{
    if (inode == NULL)
        return;
    assert(inode->refs > 0);
    if (--inode->refs > 0)
        return;
    assert(inode->handles == NULL);
    struct inode **at = &inode->disk->inodes;
    while (*at != inode)
        at = &(*at)->next;
    *at = inode->next;
    shm_release(inode->shm);
    free_room(inode->bytes);
    free_room(inode->images);
    free(inode->changes);
    free(inode);
}

static void *copy_bytes(const void *bytes, size_t len)
{
    void *copy = must(malloc(MAX(len, 1)));
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

/* Where the file ended at most since its last sync. */
static int64_t farthest_end(const struct inode *inode)
{
    int64_t end = inode->size;
    for (size_t i = 0; i < inode->change_count; i++)
        end = MAX(end, inode->changes[i].offset + inode->changes[i].len);
    return end;
}

struct inode *inode_copy(const struct inode *from, struct crash_disk *disk)
{
    struct inode *to = inode_new(disk);
    memcpy(to->bytes, from->bytes, (size_t)farthest_end(from));
    to->size = from->size;
    to->changes = copy_bytes(from->changes, from->change_count * sizeof(*from->changes));
    to->change_count = from->change_count;
    to->change_capacity = from->change_count;
    to->lost = from->lost;
    memcpy(to->images, from->images, from->images_len);
    to->images_len = from->images_len;
    return to;
}

/* --- changes --- */

static void check_room(int64_t size)
{
    if (size > FILE_BYTES_MAX)
        abort();
}

/* Room for one more change with an image of `len` bytes. */
static void reserve_change(struct inode *inode, size_t len)
{
    check_room((int64_t)(inode->images_len + len));
    if (inode->change_count < inode->change_capacity)
        return;
    inode->change_capacity = MAX(2 * inode->change_capacity, 16);
    inode->changes =
        must(realloc(inode->changes, inode->change_capacity * sizeof(*inode->changes)));
}

/* The range keeps its image before it changes. */
static void note(struct inode *inode, int64_t offset, int64_t len, int64_t size, bool truncation)
{
    reserve_change(inode, (size_t)len);
    inode->changes[inode->change_count++] = (struct change){
        .seq = ++inode->disk->seq,
        .offset = offset,
        .len = len,
        .size_before = inode->size,
        .size_after = size,
        .image = inode->images_len,
        .is_truncation = truncation,
    };
    /* Behind its end there is nothing to read, and no page to fetch for it. */
    char *image = inode->images + inode->images_len;
    int64_t there = MIN(MAX(inode->size - offset, (int64_t)0), len);
    memcpy(image, inode->bytes + offset, (size_t)there);
    memset(image + there, 0, (size_t)(len - there));
    inode->images_len += (size_t)len;
}

void inode_write(struct inode *inode, const void *bytes, int64_t len, int64_t offset)
{
    assert(len >= 0 && offset >= 0);
    if (len == 0)
        return;
    check_room(offset + len);
    int64_t size = MAX(inode->size, offset + len);
    note(inode, offset, len, size, false);
    memcpy(inode->bytes + offset, bytes, (size_t)len);
    inode->size = size;
}

void inode_resize(struct inode *inode, int64_t size)
{
    assert(size >= 0);
    if (size == inode->size)
        return;
    check_room(size);
    int64_t dropped = MAX(inode->size - size, 0);
    note(inode, size, dropped, size, true);
    memset(inode->bytes + size, 0, (size_t)dropped);
    inode->size = size;
}

static void forget_changes(struct inode *inode)
{
    inode->change_count = 0;
    inode->images_len = 0;
    inode->lost = 0;
}

/* --- syncs --- */

static void exchange(char *a, char *b, int64_t len)
{
    for (int64_t i = 0; i < len; i++) {
        char byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Back to what is on the disk for certain; each image then holds what its change wrote. */
static void rewind_changes(struct inode *inode)
{
    for (size_t i = inode->change_count; i-- > 0;) {
        const struct change *c = &inode->changes[i];
        exchange(inode->images + c->image, inode->bytes + c->offset, c->len);
        inode->size = c->size_before;
    }
}

static void set_size(struct inode *inode, int64_t size)
{
    if (size < inode->size)
        memset(inode->bytes + size, 0, (size_t)(inode->size - size));
    inode->size = size;
}

/* Part of a change, after rewind_changes(). */
static void redo_part(struct inode *inode, const struct change *c, int64_t from, int64_t to)
{
    memcpy(inode->bytes + c->offset + from, inode->images + c->image + from, (size_t)(to - from));
    inode->size = MAX(inode->size, c->offset + to);
}

static void redo(struct inode *inode, const struct change *c)
{
    if (c->is_truncation)
        set_size(inode, c->size_after);
    else
        redo_part(inode, c, 0, c->len);
}

/* Notes as changes where the file differs from `seen`, which it then equals. */
static void become(struct inode *inode, const char *seen, int64_t size)
{
    inode_resize(inode, size);
    for (int64_t at = 0; at < size; at += SECTOR) {
        int64_t len = MIN(SECTOR, size - at);
        if (memcmp(inode->bytes + at, seen + at, (size_t)len) != 0)
            inode_write(inode, seen + at, len, at);
    }
}

/* Makes the changes durable that no failed sync has lost. The others stay as they look. */
static void sync_past_lost(struct inode *inode)
{
    int64_t size = inode->size;
    char *seen = copy_bytes(inode->bytes, (size_t)size);
    rewind_changes(inode);
    for (size_t i = inode->lost; i < inode->change_count; i++)
        redo(inode, &inode->changes[i]);
    forget_changes(inode);
    become(inode, seen, size);
    inode->lost = inode->change_count;
    free(seen);
}

/* What came later stays as it is; its images begin where the first of them does. */
static void forget_changes_through(struct inode *inode, uint64_t through)
{
    size_t kept = 0;
    while (kept < inode->change_count && inode->changes[kept].seq <= through)
        kept++;
    if (kept == 0)
        return;
    size_t images = kept < inode->change_count ? inode->changes[kept].image : inode->images_len;
    inode->change_count -= kept;
    inode->images_len -= images;
    memmove(inode->changes, inode->changes + kept, inode->change_count * sizeof(*inode->changes));
    memmove(inode->images, inode->images + images, inode->images_len);
    for (size_t i = 0; i < inode->change_count; i++)
        inode->changes[i].image -= images;
}

void inode_sync(struct inode *inode, uint64_t through)
{
    if (inode->lost == 0)
        forget_changes_through(inode, through);
    else if (inode->lost < inode->change_count)
        sync_past_lost(inode);
}

void inode_fail_sync(struct inode *inode)
{
    inode->lost = inode->change_count;
}

/* --- a power cut --- */

static bool flip(const struct cut *cut)
{
    return cut->draw(cut->ctx, 2) == 1;
}

/* A disk that is not powersafe may spoil the rest of a sector that it was writing. */
static void spoil(struct inode *inode, const struct cut *cut, int64_t from, int64_t to)
{
    for (int64_t at = from; at < MIN(to, inode->size); at++)
        inode->bytes[at] = (char)cut->draw(cut->ctx, 256);
}

static void spoil_edges(struct inode *inode, const struct cut *cut, const struct change *c)
{
    int64_t end = c->offset + c->len;
    if (cut->powersafe || !flip(cut))
        return;
    spoil(inode, cut, c->offset / SECTOR * SECTOR, c->offset);
    spoil(inode, cut, end, (end + SECTOR - 1) / SECTOR * SECTOR);
}

/* Some sectors of a write, or its first ones. */
static void redo_torn(struct inode *inode, const struct cut *cut, const struct change *c)
{
    spoil_edges(inode, cut, c);
    bool in_order = flip(cut);
    for (int64_t from = 0; from < c->len;) {
        int64_t to = MIN((c->offset + from) / SECTOR * SECTOR + SECTOR - c->offset, c->len);
        if (cut->draw(cut->ctx, in_order ? 8 : 2) != 0)
            redo_part(inode, c, from, to);
        else if (in_order)
            break;
        from = to;
    }
}

static void redo_by_chance(struct inode *inode, const struct cut *cut, const struct change *c)
{
    uint64_t fate = cut->draw(cut->ctx, 5);
    if (fate < 2)
        redo(inode, c);
    else if (fate == 2 && !c->is_truncation)
        redo_torn(inode, cut, c);
    else if (fate == 3 && !c->is_truncation) /* the size is on the disk, the bytes are not */
        inode->size = MAX(inode->size, c->offset + c->len);
}

static void redo_after_cut(struct inode *inode, const struct cut *cut, const struct change *c)
{
    switch (cut->how) {
    case CRASH_CUT_KEEP:
        redo(inode, c);
        break;
    case CRASH_CUT_RANDOM:
        redo_by_chance(inode, cut, c);
        break;
    case CRASH_CUT_PREFIX:
        if (c->seq < cut->prefix)
            redo(inode, c);
        break;
    case CRASH_CUT_TORN_LAST:
        if (c->seq == cut->last)
            redo_torn(inode, cut, c);
        else
            redo(inode, c);
        break;
    case CRASH_CUT_DROP:
    case CRASH_CUT_ANY:
        break;
    }
}

void inode_cut(struct inode *inode, const struct cut *cut)
{
    rewind_changes(inode);
    for (size_t i = 0; i < inode->change_count; i++)
        redo_after_cut(inode, cut, &inode->changes[i]);
    forget_changes(inode);
}
