#include "native/kernel_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* More symbols are ignored: the kernel has some 200,000. */
#define MANY 4000000u

/* Longer names are cut, in bytes. The kernel's are not longer (KSYM_NAME_LEN in include/linux/kallsyms.h, v6.18). */
#define NAME "511"

struct kernel_symbol {
	uint64_t start;
	size_t name; /* an offset in `names` */
};

struct kernel_symbols {
	struct kernel_symbol *of;
	size_t count, capacity;
	char *names;
	size_t length, names_capacity;
};

/* Adds a symbol. False if there is not enough memory. */
static bool add(struct kernel_symbols *symbols, uint64_t start, const char *name)
{
	const size_t length = strlen(name) + 1;

	if (!array_make_room(symbols->of, symbols->capacity, symbols->count + 1) ||
	    !array_make_room(symbols->names, symbols->names_capacity, symbols->length + length))
		return false;
	memcpy(symbols->names + symbols->length, name, length);
	symbols->of[symbols->count++] = (struct kernel_symbol){.start = start, .name = symbols->length};
	symbols->length += length;
	return true;
}

/* Whether the kind of a symbol, as nm(1) shows it, is that of code. */
static bool is_code(char kind)
{
	return strchr("tTwW", kind) != NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct kernel_symbol *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->name < other->name ? -1 : one->name > other->name;
}

static bool read_lines(struct kernel_symbols *symbols, FILE *file)
{
	char name[512], kind;
	uint64_t start;
	bool ok = true;

	while (ok && symbols->count < MANY &&
	       fscanf(file, "%" SCNx64 " %c %" NAME "s%*[^\n]", &start, &kind, name) == 3)
		if (start != 0 && is_code(kind))
			ok = add(symbols, start, name);
	return ok;
}

struct error *kernel_symbols_read(const char *path, struct kernel_symbols **ret)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));
	FILE *file = symbols ? fopen(path, "re") : NULL;
	struct error *error = NULL;

	if (!symbols)
		return error_no_memory();
	if (!file)
		error = error_create(EXIT_FAILED, "%s cannot be read: %s", path, strerror(errno));
	else if (!read_lines(symbols, file))
		error = error_no_memory();
	else if (!symbols->of)
		error =
		    error_create(EXIT_NO_PERMISSION,
				 "the kernel hides the addresses of its functions (kernel.kptr_restrict); run rbdump "
				 "as root, or without --kernel-frames");
	if (file)
		fclose(file);
	if (error) {
		kernel_symbols_destroy(symbols);
		return error;
	}
	if (symbols->of)
		qsort(symbols->of, symbols->count, sizeof(*symbols->of), by_start);
	*ret = symbols;
	return NULL;
}

void kernel_symbols_destroy(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->of);
	free(symbols->names);
	free(symbols);
}

const char *kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address, uint64_t *start)
{
	const size_t at = array_first(symbols->of, symbols->count, one, one->start > address);
	size_t first = at;

	if (at == 0)
		return NULL;
	/* Of several names of one function, the first in the file. */
	while (first > 1 && symbols->of[first - 2].start == symbols->of[at - 1].start)
		first--;
	*start = symbols->of[first - 1].start;
	return symbols->names + symbols->of[first - 1].name;
}
