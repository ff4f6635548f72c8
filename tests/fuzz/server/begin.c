/* The beginning of every fuzz program that has a server. */
#include "begin.h"

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
    if (!is_open)
        fuzz_server_open(1);
    is_open = true;
}
