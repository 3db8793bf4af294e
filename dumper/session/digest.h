/*
 * The digest of the ELF file that contains Ruby. The cache keeps data about this ELF file in files whose paths contain
 * the digest (store/made.h).
 */
#ifndef RBDUMP_SESSION_DIGEST_H
#define RBDUMP_SESSION_DIGEST_H

#include "target/module.h"

/*
 * Returns the digest of a module's file. The module owns the digest. The first call for a module computes the digest, or
 * looks it up in the cache (store/known_files.h). Returns NULL if the file is missing or cannot be read.
 */
const char *session_digest(struct module *module);

#endif
