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

/* Whether a name is that of a function, to which the compiler may have added something, after a dot. */
static bool names_function(const char *name, const char *function)
{
	const size_t length = strlen(function);

	return strncmp(name, function, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

bool machine_interprets(const char *name)
{
	return names_function(name, "vm_exec_core");
}

bool machine_executes(const char *name)
{
	return names_function(name, "vm_exec") || names_function(name, "rb_vm_exec");
}
