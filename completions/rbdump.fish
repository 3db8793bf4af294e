# fish completion for rbdump

# Is the verb one of these?
function __rbdump_verb
    set -l words (commandline -opc)
    contains -- "$words[2]" $argv
end

function __rbdump_rubies
    pgrep -a ruby | string replace " " \t
end

# The command after `--` is completed as if it were the whole line.
function __rbdump_command
    set -l words (commandline -opc)
    if set -l dashes (contains -i -- -- $words)
        complete --do-complete=(string join " " -- (string escape -- $words[(math $dashes + 1)..-1]) (commandline -ct))
    end
end

set -l verbs dump record report experiment heap object layout version help

complete -c rbdump -f
complete -c rbdump -n "not __rbdump_verb $verbs" -a dump -d "print the stack of every thread"
complete -c rbdump -n "not __rbdump_verb $verbs" -a record -d "sample a process"
complete -c rbdump -n "not __rbdump_verb $verbs" -a report -d "show a recording"
complete -c rbdump -n "not __rbdump_verb $verbs" -a experiment -d "measure how far sampled stacks can be trusted"
complete -c rbdump -n "not __rbdump_verb $verbs" -a heap -d "count the objects of a process, or show what keeps them alive"
complete -c rbdump -n "not __rbdump_verb $verbs" -a object -d "print one object of a process"
complete -c rbdump -n "not __rbdump_verb $verbs" -a layout -d "make the layout of a Ruby from its debug info"
complete -c rbdump -n "not __rbdump_verb $verbs" -a version -d "print the version, and the available layouts"
complete -c rbdump -n "not __rbdump_verb $verbs" -a help -d "print the options of a command"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb help" -a "dump record report experiment heap object layout version"
complete -c rbdump -n "__rbdump_verb report layout" -F
complete -c rbdump -n "__rbdump_verb heap" -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb object" -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb record experiment" -a "(__rbdump_command)"
complete -c rbdump -s h -l help -d "print the help"

complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s p -l pid -d "the process" -x -a "(__rbdump_rubies)"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s c -l core -d "a core file" -r -F
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l children -d "also dump all descendants"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l json -d "print JSON instead of text"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l all -d "show each thread alone"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l color -d "whether to use colours" -x -a "auto\t always\t never\t"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l watch -d "dump the process every so many seconds" -x
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s n -l looks -d "dump the process so many times, and merge the results" -x
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s i -l interval -d "with --looks: the seconds between two looks" -x
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l no-stop -d "do not pause the process"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l locals -d "add the local variables of each frame"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l self -d "add self of each frame"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l source -d "add the lines of the source"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l args -d "add the command line and the names of the environment"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l native -d "also print native frames"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l inlines -d "with --native, also print functions that are inlined"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l offsets -d "use this layout" -r -F
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l nearest -d "if the release has no layout, use the nearest layout"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l time-limit -d "give up if there is nothing to show after this many seconds" -x
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l ruby-version -d "the version of Ruby, if the core does not contain it" -x
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -l force -d "use the executable even if its build-id differs"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s V -l version -d "print the version, and the available layouts"
complete -c rbdump -n "not __rbdump_verb record report experiment heap object layout version help" -s g -l gen-offsets -d "make the layout of a Ruby from its debug info" -r -F
complete -c rbdump -n "not __rbdump_verb record report experiment heap object version help" -s o -l output -d "write the layout to this file" -r -F
complete -c rbdump -n "not __rbdump_verb record report experiment heap object version help" -l any-build -d "make one layout for all builds of this version of Ruby"

complete -c rbdump -n "__rbdump_verb record report" -s o -l output -d "write to this file" -r -F
complete -c rbdump -n "__rbdump_verb record report" -l by -d "which time to show" -x -a "wall\t cpu\t gvl\t gc\t"
complete -c rbdump -n "__rbdump_verb record report" -l idle -d "also show idle threads"
complete -c rbdump -n "__rbdump_verb record report" -l on-cpu -d "only samples of threads on a CPU"
complete -c rbdump -n "__rbdump_verb record report" -l gc -d "only samples of threads in the garbage collector"
complete -c rbdump -n "__rbdump_verb record report" -l threads -d "show each thread separately, or all threads as one" -x -a "each\t merged\t"
complete -c rbdump -n "__rbdump_verb record report" -l lines -d "show the lines of a function separately"

complete -c rbdump -n "__rbdump_verb record" -s p -l pid -d "the process; may be repeated" -x -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb record" -l children -d "also record all present and future descendants"
complete -c rbdump -n "__rbdump_verb record" -l all -d "record all Ruby processes of the machine"
complete -c rbdump -n "__rbdump_verb record" -l cgroup -d "with --all: only processes of this cgroup" -x -a "(__fish_complete_directories /sys/fs/cgroup/)"
complete -c rbdump -n "__rbdump_verb record" -l user -d "with --all: only processes of this user" -x -a "(__fish_complete_users)"
complete -c rbdump -n "__rbdump_verb record" -s r -l rate -d "samples of each thread per second" -x
complete -c rbdump -n "__rbdump_verb record" -l max-cpu -d "take at most this many percent of a CPU" -x
complete -c rbdump -n "__rbdump_verb record" -s d -l duration -d "stop after this many seconds" -x
complete -c rbdump -n "__rbdump_verb record" -s f -l format -d "the format of the output" -x -a "raw\t flamegraph\t collapsed\t speedscope\t pprof\t firefox\t callgrind\t json\t summary\t"
complete -c rbdump -n "__rbdump_verb record" -l mode -d "how stacks are copied" -x -a "auto\t kernel\t paused\t unpaused\t"
complete -c rbdump -n "__rbdump_verb record" -l native -d "also record the functions in C"
complete -c rbdump -n "__rbdump_verb record" -l kernel-frames -d "like --native, and also record the functions of the kernel"
complete -c rbdump -n "__rbdump_verb record" -l rotate -d "begin a new file at this interval, in seconds" -x
complete -c rbdump -n "__rbdump_verb record" -l offsets -d "use this layout" -r -F
complete -c rbdump -n "__rbdump_verb record" -l nearest -d "if the release has no layout, use the nearest layout"
complete -c rbdump -n "__rbdump_verb record" -l time-limit -d "give up on a process that cannot be read within this many seconds" -x

complete -c rbdump -n "__rbdump_verb report" -s f -l format -d "the format of the output" -x -a "flamegraph\t collapsed\t speedscope\t pprof\t firefox\t callgrind\t json\t summary\t"
complete -c rbdump -n "__rbdump_verb report" -l state -d "show only samples in this state; may be repeated" -x -a "cpu\t gc\t gvl\t blocked\t sleeping\t starting\t stopped\t paging\t runnable\t"
complete -c rbdump -n "__rbdump_verb report" -l thread -d "show only the thread with this name or tid" -x -a "main\t"
complete -c rbdump -n "__rbdump_verb report" -l pid -d "show only this process" -x
complete -c rbdump -n "__rbdump_verb report" -l from -d "show only the time after this second" -x
complete -c rbdump -n "__rbdump_verb report" -l to -d "show only the time before this second" -x
complete -c rbdump -n "__rbdump_verb report" -l diff -d "compare with this recording" -r -F
complete -c rbdump -n "__rbdump_verb report" -l max-memory -d "use at most this many megabytes of memory" -x

complete -c rbdump -n "__rbdump_verb experiment" -s p -l pid -d "the process" -x -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb experiment" -s r -l rate -d "samples per second" -x
complete -c rbdump -n "__rbdump_verb experiment" -s n -l samples -d "samples per mode" -x
complete -c rbdump -n "__rbdump_verb experiment" -s d -l duration -d "stop after this many seconds" -x
complete -c rbdump -n "__rbdump_verb experiment" -s m -l modes -d "the modes" -x -a "unpaused-naive\t unpaused-once\t unpaused-double\t unpaused\t paused-naive\t paused\t kernel\t"
complete -c rbdump -n "__rbdump_verb experiment" -l budget -d "retry an unpaused sample for at most this many microseconds" -x
complete -c rbdump -n "__rbdump_verb experiment" -l on-torn -d "what to do if a thread is stopped while its stack is changing" -x -a "again\t report\t drop\t step\t"
complete -c rbdump -n "__rbdump_verb experiment" -l seed -d "the seed for the random order of the blocks" -x
complete -c rbdump -n "__rbdump_verb experiment" -l oracle -d "a list of the calls that the target can make" -r -F
complete -c rbdump -n "__rbdump_verb experiment" -l progress -d "a file in which the target counts its progress" -r -F
complete -c rbdump -n "__rbdump_verb experiment" -l json -d "write the report to this file, as JSON" -r -F
complete -c rbdump -n "__rbdump_verb experiment" -l torn-log -d "write rejected, impossible and single-stepped samples to this file" -r -F
complete -c rbdump -n "__rbdump_verb experiment" -l offsets -d "use this layout" -r -F
complete -c rbdump -n "__rbdump_verb experiment" -l nearest -d "if the release has no layout, use the nearest layout"

complete -c rbdump -n "__rbdump_verb heap" -s p -l pid -d "the process" -x -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb heap" -s c -l core -d "a core file" -r -F
complete -c rbdump -n "__rbdump_verb heap" -l ruby-version -d "the version of Ruby, if the core does not contain it" -x
complete -c rbdump -n "__rbdump_verb heap" -l force -d "use the executable even if its build-id differs"
complete -c rbdump -n "__rbdump_verb heap" -l json -d "print JSON instead of text"
complete -c rbdump -n "__rbdump_verb heap" -l stop -d "stop the process while its heap is read"
complete -c rbdump -n "__rbdump_verb heap" -l max-pause -d "with --stop: stop the process for at most this many milliseconds" -x
complete -c rbdump -n "__rbdump_verb heap" -s n -l top -d "print only this many classes, or rows of a tree below each row" -x
complete -c rbdump -n "__rbdump_verb heap" -l all -d "print all classes, or all rows of a tree"
complete -c rbdump -n "__rbdump_verb heap" -l diff -d "compare with what --json wrote earlier" -r -F
complete -c rbdump -n "__rbdump_verb heap" -l paths -d "also print what keeps the objects of each class alive"
complete -c rbdump -n "__rbdump_verb heap" -l dominators -d "print which objects keep how much memory"
complete -c rbdump -n "__rbdump_verb heap" -l why -d "print what keeps an object or a class alive" -x
complete -c rbdump -n "__rbdump_verb heap" -l depth -d "print at most this many levels of a tree" -x
complete -c rbdump -n "__rbdump_verb heap" -s f -l format -d "write a flame graph, or all objects for other tools" -x -a "flamegraph\t collapsed\t objspace\t"
complete -c rbdump -n "__rbdump_verb heap" -s o -l output -d "with --format: write to this file" -r -F
complete -c rbdump -n "__rbdump_verb heap" -l time-limit -d "give up if no layout is found within this many seconds" -x
complete -c rbdump -n "__rbdump_verb heap" -l offsets -d "use this layout" -r -F
complete -c rbdump -n "__rbdump_verb heap" -l nearest -d "if the release has no layout, use the nearest layout"

complete -c rbdump -n "__rbdump_verb object" -s p -l pid -d "the process" -x -a "(__rbdump_rubies)"
complete -c rbdump -n "__rbdump_verb object" -s c -l core -d "a core file" -r -F
complete -c rbdump -n "__rbdump_verb object" -l ruby-version -d "the version of Ruby, if the core does not contain it" -x
complete -c rbdump -n "__rbdump_verb object" -l force -d "use the executable even if its build-id differs"
complete -c rbdump -n "__rbdump_verb object" -l json -d "print JSON instead of text"
complete -c rbdump -n "__rbdump_verb object" -s n -l top -d "print only this many references each way" -x
complete -c rbdump -n "__rbdump_verb object" -l all -d "print all references"
complete -c rbdump -n "__rbdump_verb object" -l time-limit -d "give up if no layout is found within this many seconds" -x
complete -c rbdump -n "__rbdump_verb object" -l offsets -d "use this layout" -r -F
complete -c rbdump -n "__rbdump_verb object" -l nearest -d "if the release has no layout, use the nearest layout"
