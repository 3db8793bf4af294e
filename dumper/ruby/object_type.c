#include "ruby/object_type.h"

#include <string.h>

struct name {
	enum layout_enumerator_id id;
	const char *name;
};

static const struct name types[] = {
    {E_RUBY_T_OBJECT, "T_OBJECT"}, {E_RUBY_T_CLASS, "T_CLASS"},	    {E_RUBY_T_MODULE, "T_MODULE"},
    {E_RUBY_T_FLOAT, "T_FLOAT"},   {E_RUBY_T_STRING, "T_STRING"},   {E_RUBY_T_REGEXP, "T_REGEXP"},
    {E_RUBY_T_ARRAY, "T_ARRAY"},   {E_RUBY_T_HASH, "T_HASH"},	    {E_RUBY_T_STRUCT, "T_STRUCT"},
    {E_RUBY_T_BIGNUM, "T_BIGNUM"}, {E_RUBY_T_FILE, "T_FILE"},	    {E_RUBY_T_DATA, "T_DATA"},
    {E_RUBY_T_MATCH, "T_MATCH"},   {E_RUBY_T_COMPLEX, "T_COMPLEX"}, {E_RUBY_T_RATIONAL, "T_RATIONAL"},
    {E_RUBY_T_SYMBOL, "T_SYMBOL"}, {E_RUBY_T_IMEMO, "T_IMEMO"},	    {E_RUBY_T_NODE, "T_NODE"},
    {E_RUBY_T_ICLASS, "T_ICLASS"}, {E_RUBY_T_ZOMBIE, "T_ZOMBIE"},   {E_RUBY_T_MOVED, "T_MOVED"},
};

static const struct name imemos[] = {
    {E_imemo_env, "imemo_env"},
    {E_imemo_cref, "imemo_cref"},
    {E_imemo_svar, "imemo_svar"},
    {E_imemo_throw_data, "imemo_throw_data"},
    {E_imemo_ifunc, "imemo_ifunc"},
    {E_imemo_memo, "imemo_memo"},
    {E_imemo_ment, "imemo_ment"},
    {E_imemo_iseq, "imemo_iseq"},
    {E_imemo_tmpbuf, "imemo_tmpbuf"},
    {E_imemo_alloc, "imemo_alloc"},
    {E_imemo_ast, "imemo_ast"},
    {E_imemo_parser_strterm, "imemo_parser_strterm"},
    {E_imemo_callinfo, "imemo_callinfo"},
    {E_imemo_callcache, "imemo_callcache"},
    {E_imemo_constcache, "imemo_constcache"},
    {E_imemo_fields, "imemo_fields"},
    {E_imemo_cvar_entry, "imemo_cvar_entry"},
    {E_imemo_subclasses, "imemo_subclasses"},
};

static const char *find(const struct layout *layout, const struct name *names, size_t count, uint64_t number)
{
	for (size_t i = 0; i < count; i++) {
		const struct layout_number *enumerator = &layout->enumerators[names[i].id];

		if (enumerator->present && (uint64_t)enumerator->value == number)
			return names[i].name;
	}
	return NULL;
}

const char *object_type_name(const struct layout *layout, uint64_t type)
{
	return find(layout, types, sizeof(types) / sizeof(types[0]), type);
}

const char *object_imemo_name(const struct layout *layout, uint64_t imemo)
{
	return find(layout, imemos, sizeof(imemos) / sizeof(imemos[0]), imemo);
}

const char *object_type_constant(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].name;
	return "?";
}
