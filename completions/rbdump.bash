# bash completion for rbdump

_rbdump()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

	case $previous in
	-p | --pid)
		mapfile -t COMPREPLY < <(compgen -W "$(pgrep ruby 2>/dev/null)" -- "$current")
		return
		;;
	-g | --gen-offsets | -o | --output | --offsets)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "-p --pid --json --no-stop --offsets -g --gen-offsets -o --output --any-build \
		-h --help -V --version" -- "$current")
}

complete -o filenames -F _rbdump rbdump
