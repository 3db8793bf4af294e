/*
 * Which layout for this Ruby: the search through the folders of layouts, and the making of one on the spot.
 *
 * The folders, in order: $RBDUMP_OFFSETS_D (colon-separated), the user's cache ($XDG_CACHE_HOME/rbdump/offsets.d, else
 * ~/.cache/rbdump/offsets.d, which has what the user has made with --gen-offsets; and what rbdump has made itself, see
 * layout/made.h), and the one that comes with the program: PREFIX/share/rbdump/offsets.d for PREFIX/bin/rbdump, or
 * offsets.d of the tree that it was built in. A folder or file that is not trusted (trust/trust.h) is passed over.
 */
#ifndef RBDUMP_FIND_H
#define RBDUMP_FIND_H

#include "error.h"
#include "layout.h"
#include "trace/trace.h"

/* What the layout is wanted for. */
struct layout_wish {
	const char *version;  /* of the running Ruby: "3.4.5"; NULL if not known: then only the build-id tells */
	const char *arch;     /* "x86_64" */
	const char *build_id; /* hexadecimal, of the ELF that Ruby is in; NULL if it has none */
	/* What that Ruby says of itself; NULL if not known. A layout that is for other patch levels is none. */
	const char *description;
	/* Of that ELF (layout/digest.h); NULL if not known: then no layout that rbdump has made itself is found. */
	const char *digest;
};

/* A layout and where it came from. */
struct layout_found {
	struct layout *layout;
	enum layout_source source;
	char *file; /* NULL if it is in none */
	/* Of one that was made now: the digest of the file that it is made of, if it may be kept; else NULL. */
	char *digest;
};

/* Drops what a search found; all-zero is fine. */
void layout_found_clear(struct layout_found *found);

/*
 * Reads the file that the user gave. Fails, naming the file, with EXIT_NO_RUBY, also if it is for another machine or
 * for other patch levels.
 */
struct error *layout_find_given(const char *file, const struct layout_wish *wish, struct layout_found *ret);

/*
 * Looks for the layout of this very build in all folders; then for one of this version and architecture that says
 * nothing of a build; then for one that says that it holds for this version, too. A release that is newer than what a
 * layout says it is for may be like the others of its series, or not: nothing is found for it. Of those for one
 * version, that of the default configuration goes before those of others. In each folder, the file that has the name
 * that rbdump itself would give it goes first (layout_file_name()), then all others by name. Files that cannot be read
 * are passed over. skip  how many of those that are found to pass over: they did not fit Returns false if there is
 * none, or no more.
 */
bool layout_find_kept(const struct layout_wish *wish, unsigned int skip, struct layout_found *ret);

/*
 * Is shown one layout file: its header; or NULL, and what is wrong with it.
 */
typedef void layout_lister(void *context, const char *path, const struct layout *header, const char *wrong);

/* Shows the layout files of all folders, in the order in which those are searched, and by name. */
void layout_find_all(layout_lister *list, void *context);

/* Layouts that are tried one after the other. */
struct layout_list {
	struct layout_found *of;
	size_t count;
};

/* Drops what is left in a list; all-zero is fine. */
void layout_list_clear(struct layout_list *list);

/*
 * Reads the layouts of all folders that say nothing of a build and are for releases, newest first. Of those for the
 * same releases, that of the default configuration comes first. One with the same version and facts as another is left
 * out. The list is empty if there are none, or out of memory.
 */
void layout_find_releases(const char *arch, struct layout_list *ret);

/* Reads those of them that are nearest to the wished version, the nearest first (layout/nearest.h): LAYOUT_NEAREST. */
void layout_find_nearest(const struct layout_wish *wish, struct layout_list *ret);

/*
 * The newest release that a layout is for of the series that the wished version is of, as text; false if there is none.
 * Nothing says that it is right for that version.
 */
bool layout_find_newest(const struct layout_wish *wish, char *version, size_t size);

/*
 * Makes a layout from an ELF's debug info. It may be kept (layout_find_keep()) if all that it is made of is the file
 * itself, or a debug file that only root or the effective user can have put where it is; and if the file has a
 * build-id.
 *   fd    the ELF, open; not closed
 *   path  its name, for messages and for finding what belongs to it
 *   root  where the root folder is that the path is in: "/proc/PID/root", or "" for this system's
 * Fails with the sentence of the generator.
 */
struct error *layout_find_generate(const struct layout_wish *wish, int fd, const char *path, const char *root,
				   struct layout_found *ret);

/*
 * Keeps a layout that was made, and has passed the self-test, in the user's cache, if it may be kept and there is a
 * cache that is trusted.
 */
void layout_find_keep(struct layout_found *found);

/* The first folder that was to be searched and is not trusted, as a malloc'ed sentence; NULL if all are. */
char *layout_find_untrusted(void);

/* The user's cache folder for layouts, malloc'ed; NULL if there is no home. */
char *layout_cache_folder(void);

/*
 * The folder that comes with this binary: PREFIX/share/rbdump/offsets.d if it is PREFIX/bin/rbdump, or the offsets.d of
 * the tree that it was built in (build/rbdump, build/san/rbdump); malloc'ed. NULL if there is neither.
 */
char *layout_program_folder(void);

/* The name that a layout's file has in a folder, malloc'ed: VERSION-ARCH.layout, or VERSION-ARCH-BUILDID12.layout. */
char *layout_file_name(const struct layout *layout);

#endif
