/*
 * start: the guest's /init. It marks the moment the guest reached user space,
 * first thing and with no library or shell before it, then becomes /lull/main.
 *
 * The marks are:
 * - one byte to I/O port 0xf4, which whoever runs the guest can see
 *    as an exit of the virtual machine;
 * - where the kernel command line has the word "lull.boottimer", the byte 123
 *    to Firecracker's boot timer in physical memory.
 *
 * Freestanding, for x86_64: the whole program is this file.
 */

#include <stddef.h>

enum { MARK_PORT = 0xf4, MARK_BYTE = 0x01 };
enum { TIMER_ADDRESS = 0xc0000000, TIMER_BYTE = 123 };
enum { O_RDONLY = 0, O_RDWR = 2, O_SYNC = 04010000 };
enum { PROT_WRITE = 2, MAP_SHARED = 1, PAGE = 4096, AT_FDCWD = -100 };

enum { SYS_MMAP = 9, SYS_READ = 0, SYS_EXECVE = 59, SYS_EXIT = 60, SYS_MOUNT = 165,
       SYS_IOPERM = 173, SYS_OPENAT = 257 };

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void mark_port(void)
{
	if (call(SYS_IOPERM, MARK_PORT, 1, 1, 0, 0, 0) == 0)
		__asm__ volatile("outb %b0, %w1" : : "a"(MARK_BYTE), "Nd"(MARK_PORT));
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin\n");

static long open_file(const char *path, int flags)
{
	return call(SYS_OPENAT, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

// Is `word` one of the words of the kernel's command line?
static int command_line_has(const char *word)
{
	static char line[PAGE];
	long fd = open_file("/proc/cmdline", O_RDONLY);
	long length = call(SYS_READ, fd, (long)line, sizeof(line) - 1, 0, 0, 0);

	for (long i = 0; i < length; i++) {
		long n = 0;

		if (i > 0 && line[i - 1] != ' ')
			continue;
		while (word[n] && line[i + n] == word[n])
			n++;
		if (!word[n] && (line[i + n] == ' ' || line[i + n] == '\n' || !line[i + n]))
			return 1;
	}
	return 0;
}

// Without /dev/mem, or where the kernel says no, there is just no mark.
static void mark_boot_timer(void)
{
	long fd = open_file("/dev/mem", O_RDWR | O_SYNC);
	long page = call(SYS_MMAP, 0, PAGE, PROT_WRITE, MAP_SHARED, fd, TIMER_ADDRESS);

	if (page > 0)
		*(volatile unsigned char *)page = TIMER_BYTE;
}

__attribute__((noreturn, used)) static void begin(void)
{
	static const char *const argv[] = {"/lull/main", NULL};
	static const char *const envp[] = {"HOME=/", "TERM=linux", "PATH=/bin", NULL};

	mark_port();
	call(SYS_MOUNT, (long)"proc", (long)"/proc", (long)"proc", 0, 0, 0);
	call(SYS_MOUNT, (long)"dev", (long)"/dev", (long)"devtmpfs", 0, 0, 0);
	if (command_line_has("lull.boottimer"))
		mark_boot_timer();
	call(SYS_EXECVE, (long)argv[0], (long)argv, (long)envp, 0, 0, 0);
	for (;;)
		call(SYS_EXIT, 1, 0, 0, 0, 0, 0);
}
