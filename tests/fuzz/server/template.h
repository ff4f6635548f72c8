/* The rows of the template store, made by requests. */
#ifndef PAWL_FUZZ_TEMPLATE_H
#define PAWL_FUZZ_TEMPLATE_H

void template_fill(void);

#endif
