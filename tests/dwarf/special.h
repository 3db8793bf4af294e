/*
 * Synthetic structs, under the names that rbdump looks for. Each has a construct that is hard to read from DWARF.
 * harness/synthetic.py makes all other structs from fields.def.
 */
#include <stdint.h>

enum rb_thread_status_values { STATUS_OF_NOTHING };

/* Typedefs and qualifiers before the struct, and a member under the second of its names. */
typedef struct {
	struct {
		struct list_node *next, *prev;
	} n;
} list_head_t;
typedef const volatile list_head_t list_head_of_threads;
struct rb_vm_struct {
	char before[12];
	struct {
		int count;
		list_head_of_threads set;
	} ractor;
	struct {
		void *objspace;
	} gc;
};

/* Anonymous structs in unions in structs; bitfields next to each other. */
struct rb_thread_struct {
	union {
		struct {
			char pad[3];
			union {
				struct list_node lt_node;
				char bytes[40];
			};
			const void *restrict ec;
		};
		long words[7];
	};
	unsigned int priority : 3;
	enum rb_thread_status_values status : 2;
	unsigned int to_kill : 1;
	unsigned long wide : 40;
};

/* An untagged struct behind two typedefs, with a two-dimensional array. */
typedef struct {
	unsigned short pad;
	unsigned int last_id;
	void *ids[2][3];
} symbols_behind_it;
typedef symbols_behind_it rb_symbols_t;

/* A flexible array, and an array that a typedef hides. */
typedef uint64_t six_words[6];
struct succ_index_table {
	six_words imm_part;
	struct succ_dict_block *succ_part[];
};

/* A bitfield that crosses bytes, in a nested struct. */
struct rb_objspace {
	long pad;
	struct {
		unsigned int mode : 2;
		unsigned int before : 5;
		unsigned int during_gc : 11;
	} flags;
};

/* A union with members of several names; and RString in its newest form. */
struct RString {
	struct RBasic basic;
	long len;
	union {
		struct {
			char *ptr;
			union {
				long capa;
				void *shared;
			} aux;
		} heap;
		struct {
			char ary[1];
		} embed;
	} as;
};

/* The second name of a member is not used if the struct has the first. */
struct rb_control_frame_struct {
	const void *pc;
	void *sp;
	const void *_iseq;
	const void *iseq;
	const long *ep;
};

#define SPECIAL_TRUTH(STRUCT, MEMBER, FLEXIBLE, BITS)                                                                  \
	STRUCT(struct rb_vm_struct, "rb_vm_struct")                                                                    \
	MEMBER(struct rb_vm_struct, "rb_vm_struct", ractor.set.n.next)                                                 \
	MEMBER(struct rb_vm_struct, "rb_vm_struct", gc.objspace)                                                       \
	STRUCT(struct rb_thread_struct, "rb_thread_struct")                                                            \
	MEMBER(struct rb_thread_struct, "rb_thread_struct", lt_node)                                                   \
	MEMBER(struct rb_thread_struct, "rb_thread_struct", ec)                                                        \
	BITS(struct rb_thread_struct, "rb_thread_struct", status)                                                      \
	STRUCT(rb_symbols_t, "rb_symbols_t")                                                                           \
	MEMBER(rb_symbols_t, "rb_symbols_t", last_id)                                                                  \
	MEMBER(rb_symbols_t, "rb_symbols_t", ids)                                                                      \
	STRUCT(struct succ_index_table, "succ_index_table")                                                            \
	MEMBER(struct succ_index_table, "succ_index_table", imm_part)                                                  \
	FLEXIBLE(struct succ_index_table, "succ_index_table", succ_part)                                               \
	STRUCT(struct rb_objspace, "rb_objspace")                                                                      \
	BITS(struct rb_objspace, "rb_objspace", flags.during_gc)                                                       \
	STRUCT(struct RString, "RString")                                                                              \
	MEMBER(struct RString, "RString", len)                                                                         \
	MEMBER(struct RString, "RString", as.heap.ptr)                                                                 \
	MEMBER(struct RString, "RString", as.heap.aux.capa)                                                            \
	MEMBER(struct RString, "RString", as.heap.aux.shared)                                                          \
	MEMBER(struct RString, "RString", as.embed.ary)                                                                \
	STRUCT(struct rb_control_frame_struct, "rb_control_frame_struct")                                              \
	MEMBER(struct rb_control_frame_struct, "rb_control_frame_struct", pc)                                          \
	MEMBER(struct rb_control_frame_struct, "rb_control_frame_struct", sp)                                          \
	MEMBER(struct rb_control_frame_struct, "rb_control_frame_struct", iseq)                                        \
	MEMBER(struct rb_control_frame_struct, "rb_control_frame_struct", ep)
