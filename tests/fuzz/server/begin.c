/* The beginning of every fuzz program that has a server. */
#include "begin.h"

#include <sanitizer/lsan_interface.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_server_setup();
    return 0;
}

void open_for_all_inputs(void)
{
    static bool is_open;
    if (is_open)
        return;
    is_open = true;
    /* What only pages of their own (base/pages.h) point to would count as leaked. fuzz_request,
     * which closes its server, looks for leaks. */
    __lsan_disable();
    fuzz_server_open(1);
}
