#include "target/call_forms.h"

#include <stddef.h>

#include "base/system_calls.h"

static const struct call_form forms[] = {
    {SYS_read, CALL_ON_FD, "reads from"},
    {SYS_pread64, CALL_ON_FD, "reads from"},
    {SYS_readv, CALL_ON_FD, "reads from"},
    {SYS_preadv, CALL_ON_FD, "reads from"},
    {SYS_preadv2, CALL_ON_FD, "reads from"},
    {SYS_write, CALL_ON_FD, "writes to"},
    {SYS_pwrite64, CALL_ON_FD, "writes to"},
    {SYS_writev, CALL_ON_FD, "writes to"},
    {SYS_pwritev, CALL_ON_FD, "writes to"},
    {SYS_pwritev2, CALL_ON_FD, "writes to"},
    {SYS_accept, CALL_ON_FD, "accepts a connection on"},
    {SYS_accept4, CALL_ON_FD, "accepts a connection on"},
    {SYS_connect, CALL_CONNECT, "connects"},
    {SYS_recvfrom, CALL_ON_FD, "receives from"},
    {SYS_recvmsg, CALL_ON_FD, "receives from"},
    {SYS_recvmmsg, CALL_ON_FD, "receives from"}, /* its timeout does not end a wait (recvmmsg(2)) */
    {SYS_sendto, CALL_SENDTO, "sends to"},
    {SYS_sendmsg, CALL_ON_FD, "sends to"},
    {SYS_sendmmsg, CALL_ON_FD, "sends to"},
    {SYS_sendfile, CALL_TO_FROM, "copies bytes"},
    {SYS_splice, CALL_FROM_AT_TO_AT, "moves bytes"},
    {SYS_copy_file_range, CALL_FROM_AT_TO_AT, "copies bytes"},
    {SYS_tee, CALL_FROM_TO, "copies bytes"},
    {SYS_vmsplice, CALL_ON_FD, "moves memory through"},
    {SYS_flock, CALL_ON_FD, "waits for a lock (flock) on"},
    {SYS_fcntl, CALL_FCNTL, "in fcntl on"},
    {SYS_fsync, CALL_ON_FD, "writes to the disk (fsync) the data of"},
    {SYS_fdatasync, CALL_ON_FD, "writes to the disk (fdatasync) the data of"},
    {SYS_sync_file_range, CALL_ON_FD, "writes to the disk the data of"},
    {SYS_fallocate, CALL_ON_FD, "allocates space for"},
    {SYS_ftruncate, CALL_ON_FD, "truncates"},
    {SYS_getdents64, CALL_ON_FD, "lists the folder"},
    {SYS_ioctl, CALL_ON_FD, "controls (ioctl)"},
    {SYS_close, CALL_ON_FD, "closes"},
    {SYS_shutdown, CALL_ON_FD, "shuts down"},
    {SYS_open, CALL_OPEN, "opens"},
    {SYS_openat, CALL_OPENAT, "opens"},
    {SYS_poll, CALL_POLL, "waits for"},
    {SYS_ppoll, CALL_PPOLL, "waits for"},
    {SYS_select, CALL_SELECT, "waits for"},
    {SYS_pselect6, CALL_PSELECT, "waits for"},
    {SYS_epoll_wait, CALL_EPOLL, "waits for the epoll set"},
    {SYS_epoll_pwait, CALL_EPOLL, "waits for the epoll set"},
    {SYS_epoll_pwait2, CALL_EPOLL2, "waits for the epoll set"},
    {SYS_io_uring_enter, CALL_ON_FD, "waits for the io_uring"},
    {SYS_wait4, CALL_WAIT4, "waits for"},
    {SYS_waitid, CALL_WAITID, "waits for"},
    {SYS_vfork, CALL_PLAIN, "waits until its child (vfork) calls exec or ends"},
    {SYS_nanosleep, CALL_NANOSLEEP, "sleeps"},
    {SYS_clock_nanosleep, CALL_CLOCK_SLEEP, "sleeps"},
    {SYS_pause, CALL_PLAIN, "waits for a signal"},
    {SYS_rt_sigsuspend, CALL_PLAIN, "waits for a signal"},
    {SYS_rt_sigtimedwait, CALL_SIGWAIT, "waits for"},
    {SYS_futex, CALL_FUTEX, "waits for"},
    {SYS_futex_waitv, CALL_FUTEX_WAITV, "waits for"},
    {SYS_semop, CALL_QUEUE, "waits for the semaphores"},
    {SYS_semtimedop, CALL_SEMAPHORE, "waits for the semaphores"},
    {SYS_msgrcv, CALL_QUEUE, "receives from the message queue"},
    {SYS_msgsnd, CALL_QUEUE, "sends to the message queue"},
    {SYS_mq_timedreceive, CALL_QUEUE_FD, "receives from the message queue"},
    {SYS_mq_timedsend, CALL_QUEUE_FD, "sends to the message queue"},
    {SYS_getrandom, CALL_PLAIN, "waits for random bytes from the kernel"},
    {SYS_restart_syscall, CALL_PLAIN, "continues a call that was interrupted, such as poll or nanosleep"},
};

const struct call_form *call_form_of(int number)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].number == number)
			return &forms[i];
	return NULL;
}
