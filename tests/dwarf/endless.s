# A unit in C whose entries refer to themselves: a typedef of itself, a struct that is a member of itself many times
# over without a name, an imported unit that is this unit.
	.section .debug_abbrev,"",@progbits
.Labbrev:
	.uleb128 1			# a unit
	.uleb128 0x11
	.byte 1
	.uleb128 0x13, 0x0b		# DW_AT_language, data1
	.uleb128 0x03, 0x08		# DW_AT_name, string
	.byte 0, 0
	.uleb128 2			# a typedef
	.uleb128 0x16
	.byte 0
	.uleb128 0x03, 0x08
	.uleb128 0x49, 0x13		# DW_AT_type, ref4
	.byte 0, 0
	.uleb128 3			# a struct
	.uleb128 0x13
	.byte 1
	.uleb128 0x03, 0x08
	.uleb128 0x0b, 0x0b		# DW_AT_byte_size, data1
	.byte 0, 0
	.uleb128 4			# a member without a name
	.uleb128 0x0d
	.byte 0
	.uleb128 0x49, 0x13
	.byte 0, 0
	.uleb128 5			# an imported unit
	.uleb128 0x3d
	.byte 0
	.uleb128 0x18, 0x13		# DW_AT_import, ref4
	.byte 0, 0
	.byte 0
	.section .debug_info,"",@progbits
.Lunit:
	.long .Lend - .Lversion
.Lversion:
	.short 4
	.long .Labbrev
	.byte 8
.Lthis:
	.uleb128 1
	.byte 0x0c			# DW_LANG_C99
	.asciz "endless.c"
	.uleb128 5
	.long .Lthis - .Lunit
.Ltypedef:
	.uleb128 2
	.asciz "rb_env_t"
	.long .Ltypedef - .Lunit
.Lstruct:
	.uleb128 3
	.asciz "rb_execution_context_struct"
	.byte 8
	.rept 8
	.uleb128 4
	.long .Lstruct - .Lunit
	.endr
	.byte 0
	.byte 0
.Lend:
	.section .note.GNU-stack,"",@progbits
