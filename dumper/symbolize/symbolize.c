#include "symbolize/symbolize.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

/* How many addresses are kept: a direct-mapped cache. */
#define KEPT 1024u

struct symbolizer {
	Dwfl *dwfl;
	struct kept {
		uint64_t address;
		bool known;
		struct symbolized answer;
	} * kept;
};

static char *debuginfo_path; /* NULL: where libdwfl looks by default */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .debuginfo_path = &debuginfo_path,
};

struct error *symbolizer_open(pid_t pid, struct symbolizer **ret)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return error_no_memory();
	symbolizer->kept = calloc(KEPT, sizeof(*symbolizer->kept));
	symbolizer->dwfl = dwfl_begin(&callbacks);
	if (!symbolizer->kept || !symbolizer->dwfl || dwfl_linux_proc_report(symbolizer->dwfl, pid) != 0 ||
	    dwfl_report_end(symbolizer->dwfl, NULL, NULL) != 0) {
		symbolizer_close(symbolizer);
		return error_create(EXIT_FAILED, "the files that process %d has mapped cannot be read: %s", pid,
				    dwfl_errmsg(-1));
	}
	*ret = symbolizer;
	return NULL;
}

void symbolizer_close(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	if (symbolizer->dwfl)
		dwfl_end(symbolizer->dwfl);
	free(symbolizer->kept);
	free(symbolizer);
}

/* Where an inlined function was called: the place of the function around it. */
static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct symbolized_function *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) == 0 && number <= INT32_MAX)
		ret->line = (int)number;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) == 0 &&
	    dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count)
		ret->file = dwarf_filesrc(files, (size_t)number, NULL, NULL);
}

static void find_inlined(Dwfl_Module *module, uint64_t address, struct symbolized *ret)
{
	struct symbolized_function place = {0};
	Dwarf_Die *unit, *scopes = NULL, *chain = NULL;
	Dwarf_Addr bias;
	Dwfl_Line *line;
	int count;

	unit = dwfl_module_addrdie(module, address, &bias);
	if (!unit)
		return;
	line = dwfl_module_getsrc(module, address);
	if (line)
		place.file = dwfl_lineinfo(line, NULL, &place.line, NULL, NULL, NULL);
	/* The scopes of an address lead to the abstract function that its innermost one is an instance of; the scopes
	   of that innermost one are those that it lies in. */
	if (dwarf_getscopes(unit, address - bias, &scopes) <= 0)
		return;
	count = dwarf_getscopes_die(&scopes[0], &chain);
	for (int i = 0; i < count && ret->nr_inlined < SYMBOLIZED_INLINED_MAX; i++) {
		int tag = dwarf_tag(&chain[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		place.function = dwarf_diename(&chain[i]);
		ret->inlined[ret->nr_inlined++] = place;
		place = (struct symbolized_function){0};
		if (tag == DW_TAG_subprogram)
			break;
		place_of_call(unit, &chain[i], &place);
	}
	free(scopes);
	free(chain);
}

static bool find(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	Dwfl_Module *module = dwfl_addrmodule(symbolizer->dwfl, address);
	const char *name, *file = NULL;
	GElf_Addr bias = 0;
	GElf_Off offset;
	GElf_Sym symbol;

	if (!module)
		return false;
	name = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, NULL);
	if (!dwfl_module_getelf(module, &bias))
		return false;
	/* After getelf(): before it, the main file is not known. */
	name = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, NULL) ? name : NULL;
	ret->module = file ? file : name;
	ret->module_address = address - bias;
	ret->function = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
	ret->offset = ret->function ? offset : 0;
	find_inlined(module, address, ret);
	return true;
}

bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	struct kept *kept = &symbolizer->kept[(address * 0x9e3779b97f4a7c15ULL >> 32) % KEPT];

	if (kept->address != address || address == 0) {
		*kept = (struct kept){.address = address};
		kept->known = find(symbolizer, address, &kept->answer);
	}
	*ret = kept->answer;
	return kept->known;
}
