#include "ruby/self_test_parts.h"

struct error *unreadable(const struct access *access, const char *what)
{
	return finding("%s cannot be read (at 0x%llx)", what, (unsigned long long)access->address);
}
