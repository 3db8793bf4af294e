#include "ruby/data_size.h"

#include "ruby/st.h"

/* proc.c, cfunc_proc_t, v2_4_0 to v4.0.5: the environment behind a Proc of a C function, VM_ENV_DATA_SIZE + 1 words. */
#define C_ENVIRONMENT_BYTES UINT64_C(32)

/* The size of a struct. Returns whether the layout has it. */
static bool whole(const struct layout *layout, enum layout_struct_id id, uint64_t *ret)
{
	*ret = layout->sizes[id].present ? (uint64_t)layout->sizes[id].value : 0;
	return layout->sizes[id].present;
}

/* In proc_memsize, the environment pointer tells whether there is an environment behind the Proc, in which it points. */
static bool proc_size(struct access *access, uint64_t proc, uint64_t *ret)
{
	const struct layout *layout = access->layout;
	uint64_t ep;

	if (!whole(layout, S_proc, ret) || !layout_has(layout, F_proc_block) || !layout_has(layout, F_block_ep) ||
	    !layout_has(layout, F_block_type))
		return false;
	ep = access_member(access, access_address(access, proc, F_proc_block), F_block_ep);
	if (ep == proc + *ret + 8)
		*ret += C_ENVIRONMENT_BYTES;
	return !access->failed;
}

/* id_table.c, rb_id_table_memsize, v2_4_0 to v4_0_5; up to v2_7_8, fiber-local variables are in an st_table. */
static bool locals_size(struct access *access, uint64_t table, uint64_t *ret)
{
	const struct layout *layout = access->layout;

	*ret = 0;
	if (table == 0)
		return true;
	if (!layout_has(layout, F_vm_ractors))
		return st_size(access, table, ret);
	if (!layout_has(layout, F_id_table_capa) || !layout->sizes[S_id_table].present ||
	    !layout->sizes[S_id_item].present)
		return false;
	*ret = access_sizeof(access, S_id_table) +
	       access_member(access, table, F_id_table_capa) * access_sizeof(access, S_id_item);
	return true;
}

/* A thread that has never used another fiber owns its VM stack. */
static bool thread_size(struct access *access, uint64_t thread, uint64_t *ret)
{
	const struct layout *layout = access->layout;
	const bool in_ec = layout_has(layout, F_thread_ec);
	const enum layout_member_id words = in_ec ? F_ec_vm_stack_size : F_thread_vm_stack_size;
	const enum layout_member_id storage = in_ec ? F_ec_local_storage : F_thread_local_storage;
	uint64_t ec, locals;

	if (!whole(layout, S_thread, ret) || !layout_has(layout, F_thread_root_fiber) || !layout_has(layout, words) ||
	    !layout_has(layout, storage))
		return false;
	ec = in_ec ? access_member(access, thread, F_thread_ec) : thread;
	if (access_member(access, thread, F_thread_root_fiber) == 0)
		*ret += access_member(access, ec, words) * 8;
	if (!locals_size(access, access_member(access, ec, storage), &locals))
		return false;
	*ret += locals;
	return !access->failed;
}

bool data_size(struct data_types *types, struct memory *lasting, struct access *access, const struct object_slot *slot,
	       uint64_t flags, uint64_t *ret)
{
	const struct typed data = data_types_slot(access->layout, slot, flags);
	const struct data_type *type;

	*ret = 0;
	/* Ruby itself knows nothing of the memory of an RData. */
	if (data.type == 0)
		return false;
	if (data.data == 0)
		return true;
	type = data_types_read(types, access->layout, lasting, data.type);
	if (!type || data.embedded)
		return false;
	switch (type->kind) {
	case DATA_PROC:
		return proc_size(access, data.data, ret);
	case DATA_BINDING:
		return whole(access->layout, S_binding, ret);
	case DATA_MUTEX:
		return whole(access->layout, S_mutex, ret);
	case DATA_QUEUE:
		/* In head, there is no Array of the elements, but memory that the struct leads to. */
		return layout_has(access->layout, F_queue_que) && whole(access->layout, S_queue, ret);
	case DATA_SIZED_QUEUE:
		return layout_has(access->layout, F_queue_que) && whole(access->layout, S_szqueue, ret);
	case DATA_AUTOLOAD:
		return st_size(access, data.data, ret);
	case DATA_THREAD:
		return thread_size(access, data.data, ret);
	default:
		return false;
	}
}

uint64_t data_size_wants(const struct data_types *types, const struct layout *layout, const struct object_slot *slot,
			 uint64_t flags, uint64_t *length)
{
	const struct typed data = data_types_slot(layout, slot, flags);
	const struct data_type *type = data_types_kept(types, data.type);

	if (!type || data.embedded)
		return 0;
	switch (type->kind) {
	case DATA_PROC:
		*length = (uint64_t)layout->sizes[S_proc].value;
		return data.data;
	case DATA_THREAD:
		*length = (uint64_t)layout->sizes[S_thread].value;
		return data.data;
	case DATA_AUTOLOAD:
		*length = (uint64_t)layout->sizes[S_st].value;
		return data.data;
	default:
		return 0;
	}
}
