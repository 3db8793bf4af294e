# bash completion for rbdump

# The command after `--` begins at COMP_WORDS[$1]. bash-completion, if it is there, completes it in the command's own way.
_rbdump_command()
{
	if declare -F _command_offset >/dev/null; then
		compopt +o filenames
		_command_offset "$1"
	elif [[ $COMP_CWORD -eq $1 ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

_rbdump()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i

	if [[ ${COMP_WORDS[1]} == record || ${COMP_WORDS[1]} == experiment ]]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [[ ${COMP_WORDS[i]} == -- ]]; then
				_rbdump_command $((i + 1))
				return
			fi
		done
	fi
	if [[ ${COMP_WORDS[1]} == record || ${COMP_WORDS[1]} == report ]]; then
		case $previous in
		-f | --format)
			mapfile -t COMPREPLY < <(compgen -W "raw flamegraph collapsed speedscope pprof firefox callgrind json summary" -- "$current")
			[[ ${COMP_WORDS[1]} == report && ${COMPREPLY[0]} == raw ]] && COMPREPLY=("${COMPREPLY[@]:1}")
			return
			;;
		--mode)
			mapfile -t COMPREPLY < <(compgen -W "auto kernel paused unpaused" -- "$current")
			return
			;;
		--by)
			mapfile -t COMPREPLY < <(compgen -W "wall cpu gvl gc" -- "$current")
			return
			;;
		--threads)
			mapfile -t COMPREPLY < <(compgen -W "each merged" -- "$current")
			return
			;;
		--state)
			mapfile -t COMPREPLY < <(compgen -W "cpu gc gvl blocked sleeping starting stopped paging runnable" -- "$current")
			return
			;;
		--diff)
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
			;;
		esac
	fi
	if [[ ${COMP_WORDS[1]} == heap && ( $previous == -f || $previous == --format ) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "flamegraph collapsed objspace" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == heap && $previous == --diff ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == experiment ]]; then
		case $previous in
		-m | --modes)
			mapfile -t COMPREPLY < <(compgen -W "unpaused-naive unpaused-once unpaused-double unpaused paused-naive paused kernel" -- "$current")
			return
			;;
		--on-torn)
			mapfile -t COMPREPLY < <(compgen -W "again report drop step" -- "$current")
			return
			;;
		--oracle | --progress | --json | --torn-log)
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
			;;
		esac
	fi
	if [[ $previous == --color ]]; then
		mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
		return
	fi
	case $previous in
	-p | --pid)
		mapfile -t COMPREPLY < <(compgen -W "$(pgrep ruby 2>/dev/null)" -- "$current")
		return
		;;
	-c | --core | -g | --gen-offsets | -o | --output | --offsets)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac
	if [[ ${COMP_WORDS[1]} == record && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-p --pid --children --all --cgroup --user -r --rate --max-cpu -d --duration -o --output -f --format --mode --native --kernel-frames \
			--on-cpu --gc --rotate --offsets --nearest --time-limit --by --idle --threads --lines -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == report && $COMP_CWORD -gt 1 ]]; then
		if [[ $current != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "-f --format -o --output --by --idle --on-cpu --gc --state --thread --pid \
			--from --to --threads --lines --diff --max-memory -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == experiment && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-p --pid -r --rate -n --samples -d --duration -m --modes --budget --on-torn \
			--seed --oracle --progress --json --torn-log --offsets --nearest -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == heap && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-p --pid -c --core --ruby-version --force --json --stop --max-pause -n --top --all --diff --paths --dominators --why --depth \
			-f --format -o --output --offsets --nearest --time-limit -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == object && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-p --pid -c --core --ruby-version --force --json -n --top --all --offsets --nearest --time-limit -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == layout && $COMP_CWORD -gt 1 ]]; then
		if [[ $current != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "-o --output --any-build -h --help" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == help && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "dump record report experiment heap object layout version" -- "$current")
		return
	fi
	if [[ ${COMP_WORDS[1]} == version && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-h --help" -- "$current")
		return
	fi
	local verbs="dump record report experiment heap object layout version help"
	[[ $COMP_CWORD -gt 1 ]] && verbs=""
	if [[ $current != -* && ( $COMP_CWORD -eq 1 || ${COMP_WORDS[1]} == dump ) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$verbs $(pgrep ruby 2>/dev/null)" -- "$current")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "-p --pid --children -c --core --ruby-version --time-limit --force --json --all --color --watch -n --looks -i --interval --no-stop --native --inlines --locals --self --source --args --offsets --nearest -g --gen-offsets -o --output --any-build \
		-h --help -V --version" -- "$current")
}

complete -o filenames -F _rbdump rbdump
