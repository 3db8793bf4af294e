/*
 * The verbs: `rbdump VERB …`. Each function reads the command line of its verb (argv[0] is the verb's name), does the
 * work, and returns the exit status.
 */
#ifndef RBDUMP_VERBS_H
#define RBDUMP_VERBS_H

/*
 * The default verb is dump, so `rbdump PID` and `rbdump -p PID` call dump_command(), too. dump_command() also handles
 * the old options --gen-offsets and --version. The verbs `layout` and `version` have replaced these options.
 */
int dump_command(int argc, char **argv);
int layout_command(int argc, char **argv);
int record_command(int argc, char **argv);
int report_command(int argc, char **argv);
int experiment_command(int argc, char **argv);
int heap_command(int argc, char **argv);
int object_command(int argc, char **argv);
int version_command(int argc, char **argv);

#endif
