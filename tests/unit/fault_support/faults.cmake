# Test programs whose calls can be made to fail.

# Allocations (memory.h).
add_library(failing_memory OBJECT unit/fault_support/memory.c)
target_include_directories(failing_memory PRIVATE unit)
target_link_libraries(failing_memory PRIVATE pawl_base PkgConfig::SQLITE)
function(let_memory_fail target)
  target_link_libraries(${target} PRIVATE failing_memory)
  target_link_options(${target} PRIVATE LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc)
endfunction()
let_memory_fail(store_test_out_of_memory)
