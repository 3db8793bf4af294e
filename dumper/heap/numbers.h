/*
 * Writes numbers as text that people can read easily.
 */
#ifndef RBDUMP_NUMBERS_H
#define RBDUMP_NUMBERS_H

#include <stdint.h>

/* The size of a buffer for a number with separators, or for a range, which consists of two numbers. */
#define NUMBER 64

/* Writes a number with a comma between thousands: "1,234,567". */
void number_text(uint64_t value, char ret[NUMBER]);

/* Writes a number of bytes with a unit: "1.5 MiB". */
void number_bytes(uint64_t value, char ret[NUMBER]);

#endif
