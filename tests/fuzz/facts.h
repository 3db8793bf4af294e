/*
 * Facts of a stack and of a frame alone, without memory: what check/validate.h decides about them is compared with the same
 * rules, written anew.
 */
#ifndef RBDUMP_FUZZ_FACTS_H
#define RBDUMP_FUZZ_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "check/validate.h"

/* Ends the program by abort(3) if validate_stack() decides otherwise. */
void facts_check_stack(const struct stack_facts *f);

/* The same, for many facts that are made of an image (image.h, IMAGE_FACTS). */
void facts_run(const uint8_t *data, size_t size);

#endif
