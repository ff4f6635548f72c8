# Test programs whose calls can be made to fail.

# Allocations (memory.h).
add_library(failing_memory OBJECT unit/fault_support/memory.c)
target_include_directories(failing_memory PRIVATE unit)
target_link_libraries(failing_memory PRIVATE pawl_base PkgConfig::SQLITE)
function(let_memory_fail target)
  target_link_libraries(${target} PRIVATE failing_memory)
  target_link_options(${target} PRIVATE LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc)
endfunction()
foreach(target store_test_out_of_memory domain_test_out_of_memory core_test_core core_test_event_json base_test_json
        http_test_server_memory)
  if(TARGET ${target})
    let_memory_fail(${target})
  endif()
endforeach()

# Every call of the engine's tests (sweep.h).
add_library(fault_sweep OBJECT unit/fault_support/sweep.c)
target_include_directories(fault_sweep PRIVATE unit)
target_link_libraries(fault_sweep PRIVATE pawl_core)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS unit/engine/test_*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  let_memory_fail(engine_${name})
  target_link_libraries(engine_${name} PRIVATE fault_sweep)
  target_link_options(engine_${name} PRIVATE LINKER:--wrap=core_apply,--wrap=work_transaction)
endforeach()

# These run once more on a store that fails at every call. Left out: tests of what a rollback loses by design (counts,
# turns, caches), of outgoing calls, whose results are stored again after a pause by a clock that stands still there, of
# what one turn of the writer does, and those that would take long. Not under a sanitizer, which would run nearly all of
# our code there many times.
set(FAULTY_STORE admin approval_decisions approval_timing approval_views approvals child_runs damaged_rows definitions
  durable engine_steps entities entity_calls entity_history entity_updates entity_versions give_back jobs_shown lists
  not_found repairs run_control schedules signal_waits starts step_types step_values streams waits
  webhook_sending why workers)
if(NOT PAWL_SANITIZE)
  foreach(name ${FAULTY_STORE})
    add_test(NAME engine/test_${name}.faults COMMAND engine_test_${name})
    set_tests_properties(engine/test_${name}.faults PROPERTIES
      ENVIRONMENT "PAWL_TEST_STORE=failing;PAWL_TEST_FAULTS=store")
    run_in_release(engine/test_${name}.faults engine_test_${name})
  endforeach()
endif()
# And these with every allocation failing; under ASan too, which sees what is not released. It looks for uses of a stack
# after its return in the same tests without faults: that takes a fifth of their time.
set(FAULTY_MEMORY admin approval_decisions approval_timing approval_views approvals child_runs damaged_rows
  definitions durable engine_steps entities entity_calls entity_updates entity_versions give_back jobs_shown lists
  not_found repairs retention run_signals schedules signal_waits spans starts step_types step_values streams waits
  webhook_sending why)
if(NOT PAWL_SANITIZE STREQUAL "thread")
  foreach(name ${FAULTY_MEMORY})
    add_test(NAME engine/test_${name}.memory COMMAND engine_test_${name})
    set_tests_properties(engine/test_${name}.memory PROPERTIES ENVIRONMENT "PAWL_TEST_FAULTS=memory"
      ENVIRONMENT_MODIFICATION "ASAN_OPTIONS=string_append::detect_stack_use_after_return=0")
  endforeach()
endif()
# And these with each allocation failing alone: what a change goes on without must not be missing from its result.
set(FAULTY_ONCE approval_decisions approvals child_runs damaged_rows definitions durable entities entity_calls
  entity_updates jobs_shown lists retention run_control run_signals signal_waits starts step_values streams)
if(NOT PAWL_SANITIZE)
  foreach(name ${FAULTY_ONCE})
    add_test(NAME engine/test_${name}.once COMMAND engine_test_${name})
    set_tests_properties(engine/test_${name}.once PROPERTIES ENVIRONMENT "PAWL_TEST_FAULTS=memory_once")
    run_in_release(engine/test_${name}.once engine_test_${name})
  endforeach()
endif()
