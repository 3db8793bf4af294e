/*
 * Says what rbdump's symbolizer knows of a process's addresses: `symbolize PID`, addresses in hexadecimal on standard
 * input, one a line; for each, one line of JSON. It prints "{}" first, once the process has been looked at.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "native/symbolize.h"

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static void print(json_t *line)
{
	if (!line || json_dumpf(line, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF || fflush(stdout) != 0)
		exit(EXIT_FAILURE);
	json_decref(line);
}

static json_t *describe(uint64_t address, bool known, const struct symbolized *at)
{
	json_t *inlined = json_array();

	for (size_t i = 0; i < at->nr_inlined; i++)
		json_array_append_new(
		    inlined, json_pack("{s:o, s:o, s:i}", "function", string_or_null(at->inlined[i].function), "file",
				       string_or_null(at->inlined[i].file), "line", at->inlined[i].line));
	return json_pack("{s:I, s:b, s:o, s:I, s:o, s:I, s:o, s:i, s:o}", "address", (json_int_t)address, "known",
			 known, "module", string_or_null(at->module), "module_address", (json_int_t)at->module_address,
			 "function", string_or_null(at->function), "offset", (json_int_t)at->offset, "file",
			 string_or_null(at->file), "line", at->line, "inlined", inlined);
}

int main(int argc, char **argv)
{
	struct symbolizer *symbolizer = NULL;
	struct error *error;
	uint64_t address;

	if (argc != 2)
		return EXIT_USAGE;
	error = symbolizer_open((pid_t)strtol(argv[1], NULL, 10), 60000, &symbolizer);
	if (error) {
		enum exit_status status = error->status;

		fprintf(stderr, "symbolize: %s\n", error->message);
		error_destroy(error);
		return status;
	}
	print(json_object());
	while (scanf("%" SCNx64, &address) == 1) {
		struct symbolized at = {0};
		bool known = symbolize(symbolizer, address, &at);

		print(describe(address, known, &at));
	}
	symbolizer_close(symbolizer);
	return EXIT_COMPLETE;
}
