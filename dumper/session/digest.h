/*
 * The digest of the ELF file that contains Ruby. It is part of the path under which the cache keeps what is known of
 * this file (store/made.h).
 */
#ifndef RBDUMP_SESSION_DIGEST_H
#define RBDUMP_SESSION_DIGEST_H

#include "target/module.h"

/*
 * Returns the digest of a module's file, which the module owns. It is computed, or looked up in the cache
 * (store/known_files.h), when it is first asked for. Returns NULL if the file is missing or cannot be read.
 */
const char *session_digest(struct module *module);

#endif
