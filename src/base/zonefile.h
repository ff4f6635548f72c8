/* The files of the time zone database, as the system keeps them: the only I/O about time zones.
 * What is in them is for zone_parse() in domain/zone.h. "UTC" needs no file: ZONE_UTC. */
#ifndef PAWL_BASE_ZONEFILE_H
#define PAWL_BASE_ZONEFILE_H

#include "base/arena.h"
#include "base/problem.h"

enum {
    ZONE_NAME_MAX = 64,        /* the longest in use is 32: America/Argentina/ComodRivadavia */
    ZONE_FILE_MAX = 64 * 1024, /* the largest is 4 KiB */
};

#define ZONE_ROOT "/usr/share/zoneinfo"

/* Letters, digits, _ - + and between them single slashes; at most ZONE_NAME_MAX. No dots, so that
 * a name cannot lead out of the database. */
bool zone_name_ok(struct str name);

/* Reads the file of a zone into the arena. `root` is where the database is, NULL for ZONE_ROOT.
 * ERR_FIELD_INVALID: the name is not allowed, or no TZif file of a decent size has it.
 * ERR_NO_MEMORY: the arena is full. ERR_INTERNAL: the file is there and cannot be read. */
MUST_CHECK enum err zonefile_read(const char *root, struct str name, struct arena *arena,
                                  struct problem *p, struct str *ret_tzif);

#endif
