/* Has all that is wanted of rb_control_frame_struct, but elsewhere: nothing says which one is Ruby's. */
struct rb_control_frame_struct {
	void *ep, *iseq, *pc, *sp;
};

struct rb_control_frame_struct other_frame;
