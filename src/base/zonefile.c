/* Reading a file of the time zone database. */
#include "base/zonefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err read_open(int fd, struct str name, struct arena *arena, struct problem *p,
                          struct str *ret_tzif);

bool zone_name_ok(struct str name)
{
    if (name.len == 0 || name.len > ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool last = i + 1 == name.len;
        if (c == '/' && (i == 0 || last || name.ptr[i - 1] == '/'))
            return false;
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '+' || c == '/';
        if (!ok)
            return false;
    }
    return true;
}

static enum err no_such_zone(struct problem *p, struct str name)
{
    return problem_set(p, ERR_FIELD_INVALID,
                       "timezone: this server's tzdata has no zone \"%.*s\"; names are like "
                       "Europe/Berlin",
                       STR_ARG(name));
}

static enum err cannot_read(struct problem *p, struct str name, int why)
{
    return problem_set(p, ERR_INTERNAL, "Cannot read the file of the time zone %.*s: %s",
                       STR_ARG(name), strerror(why));
}

enum err zonefile_read(const char *root, struct str name, struct arena *arena, struct problem *p,
                       struct str *ret_tzif)
{
    if (!zone_name_ok(name))
        return problem_set(p, ERR_FIELD_INVALID,
                           "timezone: must be UTC or a name like Europe/Berlin, of letters, "
                           "digits, _ - + and /, with at most %d bytes",
                           ZONE_NAME_MAX);
    char path[PATH_MAX];
    int len =
        snprintf(path, sizeof(path), "%s/%.*s", root != NULL ? root : ZONE_ROOT, STR_ARG(name));
    if (len < 0 || (size_t)len >= sizeof(path))
        return cannot_read(p, name, ENAMETOOLONG);
    int fd;
    do /* a pipe of that name must not make it wait */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        bool none = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
        return none ? no_such_zone(p, name) : cannot_read(p, name, errno);
    }
    enum err e = read_open(fd, name, arena, p, ret_tzif);
    (void)close(fd);
    return e;
}

/* One byte more than the file seems to have is asked for, to see its end. */
static enum err read_open(int fd, struct str name, struct arena *arena, struct problem *p,
                          struct str *ret_tzif)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cannot_read(p, name, errno);
    if (!S_ISREG(st.st_mode) || st.st_size < 4 || st.st_size > ZONE_FILE_MAX)
        return no_such_zone(p, name);
    size_t size = (size_t)st.st_size;
    char *bytes = arena_alloc(arena, size + 1);
    if (bytes == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the time zone");
    size_t len = 0;
    while (len <= size) {
        ssize_t got = read(fd, bytes + len, size + 1 - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cannot_read(p, name, errno);
        if (got == 0)
            break;
        len += (size_t)got;
    }
    if (len != size)
        return problem_set(p, ERR_INTERNAL,
                           "The file of the time zone %.*s changed while it was read",
                           STR_ARG(name));
    if (!str_starts_with((struct str){bytes, len}, STR("TZif")))
        return no_such_zone(p, name);
    *ret_tzif = (struct str){bytes, len};
    return ERR_OK;
}
