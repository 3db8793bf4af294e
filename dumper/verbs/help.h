/*
 * The help texts: one for `rbdump --help`, and one for each verb. The script help/pages.py makes these texts, and the
 * manual pages, from help/rbdump.txt and help/VERB.txt.
 */
#ifndef RBDUMP_HELP_H
#define RBDUMP_HELP_H

extern const char help_overview[], help_dump[], help_layout[], help_record[], help_report[], help_experiment[],
    help_heap[], help_object[], help_version[];

/*
 * The names of the verbs, and the help texts of the verbs in the same order. The script help/pages.py makes both
 * lists. Each list ends with NULL.
 */
extern const char *const help_verbs[], *const help_texts[];

/* Returns the help text of the verb with the name `verb`, or NULL if there is no such verb. */
const char *help_find(const char *verb);

#endif
