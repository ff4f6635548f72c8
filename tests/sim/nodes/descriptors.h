/* Event descriptors, epoll and poll() in memory: see descriptors.c. */
#ifndef PAWL_TESTS_SIM_NODES_DESCRIPTORS_H
#define PAWL_TESTS_SIM_NODES_DESCRIPTORS_H

/* What the simulator does when code that it runs itself would wait for a descriptor. */
void descriptors_set_idle(void (*run)(void));

#endif
