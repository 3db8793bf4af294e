# A unit in Rust with look-alikes of Ruby's structs, as bindgen makes them: one of size 0, one with another layout.
	.section .debug_abbrev,"",@progbits
.Labbrev:
	.uleb128 1			# a unit
	.uleb128 0x11
	.byte 1
	.uleb128 0x13, 0x0b		# DW_AT_language, data1
	.uleb128 0x03, 0x08		# DW_AT_name, string
	.byte 0, 0
	.uleb128 2			# a struct
	.uleb128 0x13
	.byte 1
	.uleb128 0x03, 0x08
	.uleb128 0x0b, 0x0b		# DW_AT_byte_size, data1
	.byte 0, 0
	.uleb128 3			# a member
	.uleb128 0x0d
	.byte 0
	.uleb128 0x03, 0x08
	.uleb128 0x49, 0x13		# DW_AT_type, ref4
	.uleb128 0x38, 0x0b		# DW_AT_data_member_location, data1
	.byte 0, 0
	.uleb128 4			# a base type
	.uleb128 0x24
	.byte 0
	.uleb128 0x03, 0x08
	.uleb128 0x0b, 0x0b
	.uleb128 0x3e, 0x0b		# DW_AT_encoding
	.byte 0, 0
	.byte 0
	.section .debug_info,"",@progbits
.Lunit:
	.long .Lend - .Lversion
.Lversion:
	.short 4
	.long .Labbrev
	.byte 8
	.uleb128 1
	.byte 0x1c			# DW_LANG_Rust
	.asciz "yjit.rs"
.Lu8:
	.uleb128 4
	.asciz "u8"
	.byte 1, 8
	.uleb128 2
	.asciz "rb_iseq_constant_body"
	.byte 0
	.byte 0
	.uleb128 2
	.asciz "rb_control_frame_struct"
	.byte 3
	.irp name, pc, iseq, ep
	.uleb128 3
	.asciz "\name"
	.long .Lu8 - .Lunit
	.byte 0
	.endr
	.byte 0
	.byte 0
.Lend:
	.section .note.GNU-stack,"",@progbits
