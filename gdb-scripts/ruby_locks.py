"""Finds what threads and fibers wait for, who holds it, and deadlocks. dumper/ruby/locks.h and wait_frames.h do the same.

If a thread waits for a Mutex, the thread's own data refers to the Mutex. Otherwise, the method and the receiver of the
innermost frame show what the thread waits for: `pop` of a Queue, `enter` of a Monitor, `join` of a Thread.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from ruby_inspect import flonum
from ruby_memory import Unreadable
from ruby_objects import Objects, Typed
from ruby_walk import CFP, EC, FIBER, ME_CREF, RACTOR, THREAD, Stack, Walk

MUTEX = "rb_mutex_struct"
WAITER = "sync_waiter"
JOINER = "rb_waiting_list|rb_thread_list_struct"

# vm_core.h, PENDING_INTERRUPT_MASK and TRAP_INTERRUPT_MASK, 2.7 to 4.0
WAKING_INTERRUPTS = 0x0A
MONITOR_WORDS = 3  # ext/monitor/monitor.c, struct rb_monitor, 2.7 to 4.0; one of them is the Mutex
MONITOR_FRAMES = 4  # how many innermost frames are searched for the Monitor whose Mutex a thread waits for
MAX_STEPS = 100_000  # links of lists that are followed for all threads together
MAX_HELD = 64  # Mutexes of one thread
MAX_ARGUMENTS = 64
MAX_PID = 1 << 22  # linux/threads.h, PID_MAX_LIMIT

QUEUES, SIZED_QUEUES = (b"queue", b"Thread::Queue"), (b"sized_queue", b"Thread::SizedQueue")
CONDVAR, MONITOR, MUTEX_TYPE, THREAD_TYPE, FIBER_TYPE = b"condvar", b"monitor", b"mutex", b"VM/thread", b"fiber"
LOCKING = (b"lock", b"synchronize")
ENTERING = (b"enter", b"mon_enter", b"synchronize", b"mon_synchronize")
POPPING, PUSHING = (b"pop", b"shift", b"deq"), (b"push", b"<<", b"enq")
WAITING = (b"wait", b"wait2", b"waitpid", b"waitpid2", b"waitall")


@dataclass
class Wait:
    kind: str  # mutex, monitor, condition, queue_pop, queue_push, join, gvl, process, sleep
    value: int = 0  # the object that is waited for
    class_name: Optional[bytes] = None
    mutex: int = 0  # rb_mutex_t
    thread: int = 0  # rb_thread_t that must end
    length: Optional[int] = None  # elements of a Queue
    limit: Optional[int] = None  # the maximum number of elements of a SizedQueue
    seconds: Optional[float] = None  # of a sleep
    child: Optional[int] = None  # pid of a child process; -1 for any
    state: str = "none"  # of the holder: none, known, ended, unknown
    holder: Optional[int] = None  # if known, index of the stack
    keeper: Optional[int] = None  # if the holder is a fiber that is not known, the index of its thread's stack
    confirmed: bool = False  # the waiter sleeps until it is woken, nobody has woken it, and both sides' data agree


@dataclass
class Entry:
    stack: Stack
    wait: Optional[Wait] = None
    held: list = field(default_factory=list)  # of Held
    problem: Optional[str] = None  # why the wait is not known


class Held(NamedTuple):
    """A Mutex that an entry holds."""

    mutex: int  # rb_mutex_t
    value: int  # the Mutex or Monitor; 0 if it is not known
    class_name: Optional[bytes]
    frame: Optional[int]  # the number of the frame that has locked it with synchronize; None if it is not known


class Place(NamedTuple):
    """One of the innermost frames of a stack, with its method and its receiver."""

    frame: object
    method: bytes  # its own name; empty if the frame is a block
    value: int  # the receiver
    typed: Optional[Typed]  # of the receiver


class Locks:
    def __init__(self, walk: Walk, objects: Objects, stacks):
        """STACKS: all stacks of the process or core, with their frames."""
        self.walk = walk
        self.memory = walk.memory
        self.objects = objects
        self.entries = [Entry(stack) for stack in stacks]
        self._steps = MAX_STEPS
        self._threads = {s.thread: i for i, s in enumerate(stacks) if s.fiber is None}
        self._fibers, self._serials, self._keepers = {}, {}, {}
        for index, stack in enumerate(stacks):
            self._index(index, stack)
        for entry in self.entries:
            self._find(entry)
        for index, entry in enumerate(self.entries):
            if entry.wait:
                self._find_holder(entry)
            if entry.stack.fiber is None:
                self._note_held(index)

    def _index(self, index, stack):
        memory = self.memory
        try:
            if stack.ec:
                self._fibers[memory.get(stack.ec, EC, "fiber_ptr")] = index
                if memory.has(EC, "serial"):
                    self._serials[memory.get(stack.ec, EC, "serial")] = index
            if stack.fiber is None and memory.has(THREAD, "keeping_mutexes"):
                for mutex in self._held_by(stack.thread):
                    self._keepers[mutex] = index
        except Unreadable as problem:
            self.walk.problems.append(str(problem))

    def _step(self):
        self._steps -= 1
        if self._steps < 0:
            raise Unreadable("the lists of waiting threads do not end")

    # ---- what an entry waits for

    def _find(self, entry):
        try:
            entry.wait = self._wait_of(entry.stack)
            if entry.wait:
                entry.wait.class_name = self._class_name(entry.wait.value)
        except Unreadable as problem:
            entry.problem = str(problem)

    def _wait_of(self, stack):
        if stack.fiber is not None or not stack.ec:
            return None
        if stack.status == "runnable" and self._waits_for_gvl(stack):
            return Wait("gvl")
        if stack.status == "runnable" and not self._is_blocking(stack):
            return None
        places = [self._place(frame) for frame in stack.frames[:MONITOR_FRAMES]]
        if self.memory.has(THREAD, "locking_mutex"):
            value = self.memory.get(stack.thread, THREAD, "locking_mutex")
            typed = self.objects.typed(value) if value else None
            if typed and typed.name == MUTEX_TYPE:
                for place in places:
                    if place and place.typed and self._monitor_mutex(place.typed) == value:
                        return Wait("monitor", place.value, mutex=typed.data)
                return Wait("mutex", value, mutex=typed.data)
        if not places or not places[0]:
            return None
        caller = places[1] if len(places) > 1 else None
        return self._by_receiver(places[0], caller) or self._by_method(places[0])

    def _place(self, frame):
        if frame.kind == "unreadable":
            return None
        label = frame.label or b""
        method = b"" if b" " in label else label.rpartition(b"#")[2].rpartition(b".")[2]
        value = self.memory.get(frame.cfp, CFP, "self")
        return Place(frame, method, value, self.objects.typed(value))

    def _by_receiver(self, place, caller):
        """The wait in Mutex#sleep, or in a method that waits for its receiver, such as Thread#join. None for other methods."""
        typed, method = place.typed, place.method
        if typed is None:
            return None
        if typed.name == MUTEX_TYPE:
            if method in LOCKING:
                return Wait("mutex", place.value, mutex=typed.data)
            if method != b"sleep":
                return None
            # ConditionVariable#wait calls Mutex#sleep.
            of_condition = caller and caller.typed and caller.typed.name == CONDVAR
            return Wait("condition", caller.value) if of_condition else Wait("sleep")
        if typed.name == CONDVAR and method == b"wait":
            return Wait("condition", place.value)
        if typed.name == MONITOR and method in ENTERING:
            mutex = self.objects.typed(self._monitor_mutex(typed))
            return Wait("monitor", place.value, mutex=mutex.data) if mutex else None
        if typed.name == THREAD_TYPE and method in (b"join", b"value"):
            return Wait("join", place.value, thread=typed.data)
        sized = typed.name in SIZED_QUEUES
        if method in POPPING and (sized or typed.name in QUEUES):
            return self._queue(Wait("queue_pop", place.value), typed, sized)
        if method in PUSHING and sized:
            return self._queue(Wait("queue_push", place.value), typed, sized)
        return None

    def _queue(self, wait, typed, sized):
        memory = self.memory
        if memory.has("rb_queue", "len"):
            wait.length = memory.get(typed.data, "rb_queue", "len")
        elif memory.has("rb_queue", "que"):
            wait.length = self.walk.values.array(memory.get(typed.data, "rb_queue", "que"))[1]
        if sized and memory.has("rb_szqueue", "max"):
            wait.limit = memory.get(typed.data, "rb_szqueue", "max")
        return wait

    def _by_method(self, place):
        """The wait in Kernel#sleep, Thread.stop or Kernel#system, or in a method that waits for a child process, such as
        Process.wait. None for other methods."""
        if place.method not in (b"sleep", b"stop", b"system", *WAITING):
            return None
        entry = self.walk.method_entry(place.frame.ep)
        owner = self.memory.get(entry, "rb_callable_method_entry_struct|rb_method_entry_struct", "owner") if entry else 0
        if owner and not self.walk.values.is_singleton(owner):
            name = self.objects.class_name(owner)
        elif owner and self.walk.values.is_a(place.value, "RUBY_T_CLASS", "RUBY_T_MODULE"):
            name = self.objects.class_name(place.value) + b"."
        else:
            return None
        if (name.rstrip(b"."), place.method) == (b"Kernel", b"sleep") or (name, place.method) == (b"Thread.", b"stop"):
            return Wait("sleep", seconds=self._first_number(place.frame))
        if (name.rstrip(b"."), place.method) == (b"Kernel", b"system"):
            return Wait("process")
        of_process = name in (b"Process.", b"Process::Status.") and place.method in WAITING
        return Wait("process", child=self._child(place.frame)) if of_process else None

    def _child(self, frame):
        child = self._first_number(frame)
        return child if isinstance(child, int) and -MAX_PID <= child <= MAX_PID else None

    def _first_number(self, frame):
        """The first argument of a C function if this argument is a number, otherwise None (dumper/ruby/arguments.h)."""
        memory = self.memory
        size = memory.size(CFP)
        start, end = memory.get(frame.cfp + size, CFP, "sp"), frame.ep + ME_CREF
        words = (end - start) // 8
        if not 1 < words <= MAX_ARGUMENTS or memory.word(start) != memory.get(frame.cfp, CFP, "self"):
            return None
        value = memory.word(start + 8)
        if value & 1:
            return (value - (1 << 64) if value >> 63 else value) >> 1
        return flonum(value) if value & 3 == 2 else None

    def _monitor_mutex(self, typed):
        """The Mutex of a Monitor, a VALUE; 0 if the object is not a Monitor. The struct of a Monitor belongs to an extension,
        which often has no debug info. In that case, searches the struct for the word that refers to a Mutex."""
        if typed.name != MONITOR:
            return 0
        if self.memory.has("rb_monitor", "mutex"):
            return self.memory.get(typed.data, "rb_monitor", "mutex")
        for index in reversed(range(MONITOR_WORDS)):
            value = self.memory.word(typed.data + 8 * index)
            try:
                found = self.objects.typed(value)
            except Unreadable:
                continue
            if found and found.name == MUTEX_TYPE:
                return value
        return 0

    def _is_blocking(self, stack):
        return bool(self.memory.get(stack.thread, THREAD, "blocking_region_buffer"))

    def _running(self, thread):
        """The thread that has the GVL of THREAD's ractor; 0 if no thread has the GVL, None if this is not known."""
        memory = self.memory
        if memory.has("rb_vm_struct", "gvl.owner"):
            return memory.get(self.walk.vm, "rb_vm_struct", "gvl.owner")
        for path in ("threads.gvl.owner", "threads.sched.running"):
            if memory.has(RACTOR, path):
                return memory.get(memory.get(thread, THREAD, "ractor"), RACTOR, path)
        return None

    def _waits_for_gvl(self, stack):
        running = self._running(stack.thread)
        return bool(running) and running != stack.thread and not self._is_blocking(stack)

    # ---- who holds what

    def _held_by(self, thread):
        memory = self.memory
        mutex, found = memory.get(thread, THREAD, "keeping_mutexes"), []
        while mutex and len(found) < MAX_HELD:
            self._step()
            found.append(mutex)
            mutex = memory.get(mutex, MUTEX, "next_mutex")
        return found

    def _owner(self, mutex):
        """A pair: the index of the entry that holds a Mutex, or None if no such entry is known; and the state of the holder."""
        memory = self.memory
        for path, known in (("ec_serial", self._serials), ("fiber", self._fibers), ("th", self._threads)):
            if memory.has(MUTEX, path):
                owner = memory.get(mutex, MUTEX, path)
                if not owner:
                    return None, "none"
                if path == "fiber" and owner not in known:
                    return self._other_fiber(owner)
                return known.get(owner), "known" if owner in known else "unknown"
        raise Unreadable("it is not known where this Ruby stores the holder of a Mutex")

    def _other_fiber(self, fiber):
        """Like _owner(), for a fiber that was not found in a list, because this Ruby does not keep a list of fibers. Checks
        that the fiber's object refers to the fiber."""
        memory = self.memory
        try:
            found = self.objects.typed(memory.get(fiber, FIBER, "cont.self"))
            ec = fiber + memory.member(FIBER, "cont.saved_ec").offset
            thread = memory.get(ec, EC, "thread_ptr")
            if not found or (found.name, found.data) != (FIBER_TYPE, fiber) or thread not in self._threads:
                return None, "unknown"
            stack = self.walk.fiber_stack(ec, {thread: self.entries[self._threads[thread]].stack})
        except Unreadable:
            return None, "unknown"
        if stack.status == "terminated":
            return None, "ended"
        if stack.status != "suspended":
            return None, "unknown"
        self.walk.fill(stack)
        self.entries.append(Entry(stack))
        self._fibers[fiber] = len(self.entries) - 1
        return self._fibers[fiber], "known"

    def _holder_of(self, mutex):
        """The state and the index of the holder of a Mutex, and the index of the thread whose list of held Mutexes
        contains the Mutex. An index is None if it is not known."""
        index, state = self._owner(mutex)
        keeper = self._keepers.get(mutex)
        if state == "known" and keeper is not None:
            # The memory of a fiber that has ended may be another fiber now.
            same = self.entries[keeper].stack.thread == self.entries[index].stack.thread
            state = "known" if same else "unknown"
        elif state == "ended" and keeper is None:
            state = "unknown"
        if state == "unknown" and keeper is not None and self.walk.knows_fibers and not self.walk.problems:
            state = "ended"
        return state, index if state == "known" else None, keeper

    def _find_holder(self, entry):
        wait, stack = entry.wait, entry.stack
        try:
            if wait.mutex:
                wait.state, wait.holder, wait.keeper = self._holder_of(wait.mutex)
                agreed = wait.state == "ended" or (wait.state == "known" and wait.keeper is not None)
                wait.confirmed = agreed and self._sleeps(stack) and self._is_waiter(wait.mutex, stack.thread)
            elif wait.thread:
                wait.holder = self._threads.get(wait.thread)
                wait.state = "unknown" if wait.holder is None else "known"
                wait.confirmed = (
                    wait.holder is not None and self._sleeps(stack) and self._is_joined_by(wait.thread, stack.thread)
                )
            elif wait.kind == "gvl":
                wait.holder = self._threads.get(self._running(stack.thread))
                wait.state = "unknown" if wait.holder is None else "known"
        except Unreadable as problem:
            wait.state, entry.problem = "unknown", str(problem)

    def _note_held(self, index):
        """Adds each Mutex in a thread's list of held Mutexes to the entry that holds the Mutex (the thread or one of
        its fibers)."""
        for mutex in [mutex for mutex, keeper in self._keepers.items() if keeper == index]:
            try:
                state, holder, _ = self._holder_of(mutex)
                if state == "known":
                    self.entries[holder].held.append(self._held(mutex, self.entries[holder].stack))
            except Unreadable as problem:
                self.entries[index].problem = str(problem)

    def _held(self, mutex, stack):
        """A Mutex that is held by the thread or fiber of STACK. Its object is known if a frame of STACK has locked it, or if
        somebody waits for it."""
        value, number = 0, None
        for at, frame in enumerate(stack.frames):
            if frame.kind != "unreadable" and (frame.label or b"").endswith(b"synchronize"):
                place = self._place(frame)
                if place.typed and self._mutex_of(place.typed) == mutex:
                    value, number = place.value, at  # of a Monitor that was entered several times, the oldest frame
        waits = (entry.wait for entry in self.entries if entry.wait and entry.wait.mutex == mutex)
        value = value or next((wait.value for wait in waits), 0)
        return Held(mutex, value, self._class_name(value), number)

    def _mutex_of(self, typed):
        """The rb_mutex_t of a Mutex or a Monitor; 0 if it was not found."""
        if typed.name == MUTEX_TYPE:
            return typed.data
        value = self._monitor_mutex(typed)
        found = self.objects.typed(value) if value else None
        return found.data if found and found.name == MUTEX_TYPE else 0

    def _class_name(self, value):
        return self.objects.class_name(self.objects.class_of(value)) if value else None

    def _sleeps(self, stack):
        """Whether a thread waits until somebody wakes it, and nobody has woken it yet (vm_core.h, RUBY_VM_INTERRUPTED)."""
        if stack.reason or stack.status != "stopped_forever" or any(f.kind == "unreadable" for f in stack.frames):
            return False
        flag = self.memory.get(stack.ec, EC, "interrupt_flag")
        mask = self.memory.get(stack.ec, EC, "interrupt_mask") if self.memory.has(EC, "interrupt_mask") else 0
        return not flag & ~mask & WAKING_INTERRUPTS

    def _is_waiter(self, mutex, thread):
        memory = self.memory
        head = mutex + memory.member(MUTEX, "waitq.n.next").offset
        link = memory.member(WAITER, "node").offset
        following = memory.member("list_node|ccan_list_node", "next").offset
        node = memory.word(head)
        while node != head:
            self._step()
            if memory.get(node - link, WAITER, "th") == thread:
                return True
            node = memory.word(node + following)
        return False

    def _is_joined_by(self, thread, waiter):
        memory = self.memory
        joiner = memory.get(thread, THREAD, "join_list")
        while joiner:
            self._step()
            if memory.get(joiner, JOINER, "thread", "th") == waiter:
                return True
            joiner = memory.get(joiner, JOINER, "next")
        return False

    # ---- deadlocks

    def _edges(self, index):
        """The entries that must go on before an entry can go on: the holder of what it waits for, and, if it is a suspended
        fiber, the current fiber of its thread."""
        entry = self.entries[index]
        if entry.wait and entry.wait.confirmed and entry.wait.holder is not None:
            yield entry.wait.holder
        if entry.stack.fiber is not None and entry.stack.status == "suspended" and entry.stack.thread in self._threads:
            yield self._threads[entry.stack.thread]

    def deadlocks(self):
        """Lists of indexes: each entry waits for the next one, and the last one for the first. A list of one entry waits
        for a lock whose holder has ended, or for itself."""
        found, done = [], set()
        for start in range(len(self.entries)):
            path, edges = [start], [self._edges(start)]
            while path and path[0] not in done:
                following = next(edges[-1], None)
                if following is None:
                    done.add(path.pop())
                    edges.pop()
                elif following in path:
                    found.append(path[path.index(following) :])
                elif following not in done:
                    path.append(following)
                    edges.append(self._edges(following))
        ended = [i for i, e in enumerate(self.entries) if e.wait and e.wait.confirmed and e.wait.state == "ended"]
        return found + [[index] for index in ended]
