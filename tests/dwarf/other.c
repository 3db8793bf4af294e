/* A unit that only declares some of the structs, and has others of the same names that are not Ruby's. */
struct rb_thread_struct;
struct rb_iseq_struct {
	int nothing_of_ruby;
};
struct rb_objspace {
	long size;
};

struct rb_thread_struct *of_vm;
struct rb_iseq_struct other_iseq;
struct rb_objspace other_space;
