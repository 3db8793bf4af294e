/*
 * The machine code of a live process or a core: which function contains an address, and how to find the caller of that
 * function. Uses only the symbol tables and the call frame information (.eh_frame) of the mapped files. Stripped files
 * have call frame information, too. Debug info is not read. Functions that were found are cached, so a second look-up
 * of the same address costs little.
 *
 * Look-ups do not stop the process. A file is read when an address in the file is first looked up. If the process maps
 * another file later, for example a C extension, machine_code_function() finds this file, too.
 *
 * Only one thread at a time may use a struct machine_code.
 */
#ifndef RBDUMP_MACHINE_CODE_H
#define RBDUMP_MACHINE_CODE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/target.h"

struct machine_code;

/*
 * Opens the mapped files of a process. Fails if there is no such process, if access is refused, or if there is not
 * enough memory.
 */
struct error *machine_code_open(pid_t pid, struct machine_code **ret);

/*
 * Opens the files that a target had mapped when its mappings were last read. The mappings are never read again, not even
 * by machine_code_refresh(). `target` must outlive the result. Fails if there is not enough memory.
 */
struct error *machine_code_of_target(struct target *target, struct machine_code **ret);
void machine_code_close(struct machine_code *code); /* NULL is fine */

enum machine_code_kind {
	MACHINE_CODE_NONE,	/* rbdump does not know of any code at the address */
	MACHINE_CODE_GENERATED, /* the code is not from a file, so a JIT compiler probably made the code */
	MACHINE_CODE_OF_FILE,
};

struct machine_function {
	enum machine_code_kind kind;
	/*
	 * The members below are set only for MACHINE_CODE_OF_FILE. The strings are UTF-8, and valid until
	 * machine_code_close().
	 */
	uint64_t start;	  /* the address in the process at which the function begins; 0 if not known */
	const char *name; /* the symbol; "FILE+0xADDRESS" (an address in the file) if there is no symbol */
	const char *file; /* the path of the file, as the process sees it */
};

/*
 * Reads the mappings again. Call this function regularly, because the process may have unmapped a file, and mapped
 * another file at the same address. Files that are still mapped are not read again.
 */
void machine_code_refresh(struct machine_code *code);
/*
 * Returns a number that changes whenever the mappings are read again. If the number has changed, the results that the
 * caller has cached for addresses are not valid any more.
 */
uint64_t machine_code_generation(const struct machine_code *code);

/* The function at an address of the process. */
struct machine_function machine_code_function(struct machine_code *code, uint64_t address);

/*
 * Returns the call frame information of the ELF file that is mapped at an address of the process. Returns NULL if no
 * ELF file is mapped there, or if the file has no call frame information. The result is owned by `code`.
 *   bias  receives the load bias: the address of a byte in the process minus the address of the same byte in the file
 */
Dwarf_CFI *machine_code_frame_information(struct machine_code *code, uint64_t address, uint64_t *bias);

#endif
