/* The files of the web console, made at build time from console/ (tools/embed.py). */
#ifndef PAWL_API_CONSOLE_FILES_H
#define PAWL_API_CONSOLE_FILES_H

#include "base/str.h"

/* The same bytes in the forms that a client may accept, best first. */
enum console_form { CONSOLE_BROTLI, CONSOLE_GZIP, CONSOLE_PLAIN, CONSOLE_FORMS };

struct console_file {
    const char *path; /* below /console/ */
    const char *type;
    bool hashed; /* its name changes with its content */
    struct {
        struct str body;
        const char *etag;
    } form[CONSOLE_FORMS];
};

/* The page, once for each depth below /console/ at which it can be asked for: its <base> leads back
 * to /console/, whatever a proxy has put in front of that. */
extern const struct console_file CONSOLE_PAGES[];
extern const size_t CONSOLE_PAGE_COUNT;

extern const struct console_file CONSOLE_FILES[];
extern const size_t CONSOLE_FILE_COUNT;

#endif
