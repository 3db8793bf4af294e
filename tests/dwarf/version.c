/* The macros that Ruby's own version.c sees. */
#define RUBY_API_VERSION_MAJOR 9
#define RUBY_API_VERSION_MINOR 8
#define RUBY_VERSION_TEENY     7

int use_of_version;
