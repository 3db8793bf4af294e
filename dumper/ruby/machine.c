#include "ruby/machine.h"

#include <string.h>

#include "ruby/code.h"
#include "ruby/value.h"

uint64_t machine_implementation(struct access *access, uint64_t method)
{
	const uint64_t definition = access_member(access, value_object(access, method), F_ment_def);

	if (access_member(access, definition, F_mdef_type) != access_enum(access, E_VM_METHOD_TYPE_CFUNC))
		return 0;
	return access_word(access, access_address(access, definition, F_mdef_iseq));
}

uint64_t machine_first_instruction(struct access *access, uint64_t iseq)
{
	const uint64_t body = code_body(access, value_object(access, iseq));

	return access_word(access, access_member(access, body, F_body_iseq_encoded));
}

bool machine_calls_c(const char *name)
{
	static const char *const begins[] = {"vm_call_", "vm_call0_", "vm_sendish", "call_cfunc_",
					     "ractor_safe_call_cfunc_"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

bool machine_interprets(const char *name)
{
	static const char loop[] = "vm_exec_core";

	/* The compiler may have added something to the name, after a dot. */
	return strncmp(name, loop, sizeof(loop) - 1) == 0 &&
	       (name[sizeof(loop) - 1] == '\0' || name[sizeof(loop) - 1] == '.');
}
