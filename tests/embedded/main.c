/*
 * A program that Ruby was linked into: it does what `ruby` does (main.c of Ruby), and is none. The declarations are
 * those of ruby/ruby.h.
 */
void ruby_init(void);
void ruby_init_stack(void *address);
void *ruby_options(int argc, char **argv);
int ruby_run_node(void *node);
void ruby_sysinit(int *argc, char ***argv);

int main(int argc, char **argv)
{
	void *base;

	ruby_sysinit(&argc, &argv);
	ruby_init_stack(&base);
	ruby_init();
	return ruby_run_node(ruby_options(argc, argv));
}
