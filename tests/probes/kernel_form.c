/*
 * Loads the programs that sample in the kernel, in the form for kernels before 6.16, and runs them for a moment. Prints
 * "loaded", or why they cannot be.
 */
#include <stdio.h>

#include "kernel/programs.h"

int main(void)
{
	struct kernel_programs *programs = NULL;
	struct error *error = kernel_programs_load(KERNEL_FORM_COPIED, true, &programs);
	int status;

	if (!error)
		error = kernel_programs_begin(programs, 1000);
	puts(error ? error->message : "loaded");
	status = error ? (int)error->status : 0;
	error_destroy(error);
	kernel_programs_destroy(programs);
	return status;
}
