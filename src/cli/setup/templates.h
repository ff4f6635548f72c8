/* The files of a new project, by language. Made by tools/embed.py from src/cli/setup/templates. */
#ifndef PAWL_CLI_SETUP_TEMPLATES_H
#define PAWL_CLI_SETUP_TEMPLATES_H

#include <stddef.h>

struct template_file {
    const char *language; /* "python" */
    const char *name;     /* "worker.py" */
    const unsigned char *bytes;
    size_t len;
};

extern const struct template_file TEMPLATE_FILES[];
extern const size_t TEMPLATE_FILE_COUNT;

#endif
