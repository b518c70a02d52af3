/*
 * clock_steps: instructions of one clock_gettime() in user space, the vDSO's
 * among them, which valgrind does not show. A child is stepped through it,
 * several times, for the kernel changes what the vDSO reads while it is read and
 * has it begin again; prints the least.
 *
 * Threads: one. Locks: none.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define INT3 0xcc
#define MOST 100000

static void child(void)
{
	struct timespec ts;
	int i;

	clock_gettime(CLOCK_REALTIME, &ts); /* resolves the symbol */
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	for (i = 0; i < ROUNDS; i++) {
		__asm__ volatile("int3" : : : "memory");
		clock_gettime(CLOCK_REALTIME, &ts);
		__asm__ volatile("int3" : : : "memory");
	}
	_exit(0);
}

static int at_mark(pid_t pid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		return -1;
	return ((int)ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL) & 0xff) == INT3;
}

/* From the mark that stopped it to the next; 0 if it is gone. */
static long steps_to_mark(pid_t pid)
{
	int status = 0;
	long n = 0;

	while (n < MOST && at_mark(pid) == 0) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0 ||
		    waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			return 0;
		n++;
	}
	return n;
}

int main(void)
{
	pid_t pid = fork();
	long least = MOST, n;
	int status, i;

	if (pid == 0)
		child();
	for (i = 0; i < ROUNDS; i++) {
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			break;
		n = steps_to_mark(pid);
		if (n > 0 && n < least)
			least = n;
		/* over the mark behind the call, to the one before the next */
		ptrace(PTRACE_CONT, pid, NULL, NULL);
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			break;
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	}
	kill(pid, SIGKILL);
	if (least == MOST)
		return 1;
	printf("%ld\n", least);
	return 0;
}
