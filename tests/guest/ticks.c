/*
 * ticks: a guest without a kernel that counts the clock's interrupts.
 *
 * lulld boots it as an ELF kernel without a PVH note, so that it starts in long
 * mode. IRQ 8 comes by the IOAPIC; the local APIC's timer, which KVM derives from
 * the host's monotonic clock at 1 GHz, tells the time that passed. It does what the
 * words of its command line say, prints lines that begin with "LULL:" on the serial
 * port, and switches itself off. Words are a rate in Hz for its periodic interrupt,
 * and "slow" for 1024 Hz with interrupts off for an eighth of the time:
 *
 *   ticks WORD us=N count=N due=N end-us=N end-count=N end-due=N
 *
 * which are, after 5 s, the time, the interrupts that were counted, those that are
 * due in that time; then the same when all that were kept for us have come, or a
 * second later. And "seconds", for three of them:
 *
 *   updates us=N count=N due=N        alarms us=N count=N due=N
 *
 * And "hour", for one alarm that is an hour away, "hour set" when it waits for it:
 *
 *   hour us=N count=1 due=N
 *
 * Freestanding, for x86_64: the whole guest is this file.
 */
#include <stdint.h>

enum { PORT_SERIAL = 0x3f8, PORT_INDEX = 0x70, PORT_DATA = 0x71, PORT_SLEEP = 0x600 };
enum { PORT_PIC1 = 0x21, PORT_PIC2 = 0xa1 };
enum { CMD_LINE_PTR = 0x228 }; // in Linux's boot parameters
enum { SLEEP_S5 = 5 << 2 | 1 << 5 };
enum { REG_SECOND = 0, REG_MINUTE = 2, REG_HOUR = 4 }; // each before its alarm
enum { REG_A = 10, REG_B = 11, REG_C = 12 };
enum { B_24H = 0x02, B_UIE = 0x10, B_AIE = 0x20, B_PIE = 0x40, C_IRQF = 0x80 };

#define IOAPIC 0xfec00000u
#define LAPIC 0xfee00000u
enum { LAPIC_EOI = 0xb0, LAPIC_SPURIOUS = 0xf0, LAPIC_LVT_TIMER = 0x320 };
enum { LAPIC_TIMER_START = 0x380, LAPIC_TIMER_LEFT = 0x390, LAPIC_TIMER_DIVIDE = 0x3e0 };
enum { LAPIC_ENABLED = 0x100, LAPIC_MASKED = 1 << 16, DIVIDE_BY_16 = 3 };
enum { VECTOR_CLOCK = 0x28, VECTOR_SPURIOUS = 0xff, IRQ_CLOCK = 8 };

#define TIMER_NS 16u /* of one count of the local APIC's timer */
#define SECOND_NS 1000000000ull
#define RUN_NS (5 * SECOND_NS)

static volatile uint64_t interrupts; /* with the flag that we wait for */
static volatile uint8_t wanted;

static void out(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static volatile uint32_t *reg(uint64_t address)
{
	return (volatile uint32_t *)address;
}

// ---- what it prints -----------------------------------------------------------

static void print(const char *text)
{
	for (; *text; text++)
		out(PORT_SERIAL, (uint8_t)*text);
}

static void print_number(const char *name, uint64_t n)
{
	char digits[24];
	int at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	print(name);
	print(digits + at);
}

// ---- interrupts and time ------------------------------------------------------

struct frame;

struct gate {
	uint16_t low, selector, flags, middle;
	uint32_t high, unused;
} __attribute__((packed));

static struct gate gates[256];

// The clock's registers, with interrupts off: the handler has the index too.
static uint8_t clock_read(uint8_t index)
{
	out(PORT_INDEX, index);
	return in(PORT_DATA);
}

static void clock_write(uint8_t index, uint8_t value)
{
	out(PORT_INDEX, index);
	out(PORT_DATA, value);
}

__attribute__((interrupt)) static void on_clock(struct frame *frame)
{
	uint8_t c = clock_read(REG_C);

	(void)frame;
	if ((c & C_IRQF) && (c & wanted))
		interrupts++;
	*reg(LAPIC + LAPIC_EOI) = 0;
}

__attribute__((interrupt)) static void on_spurious(struct frame *frame)
{
	(void)frame;
}

static void set_gate(int vector, void (*handler)(struct frame *frame))
{
	uint64_t at = (uint64_t)handler;
	uint16_t cs;

	__asm__ volatile("mov %%cs, %0" : "=r"(cs));
	gates[vector] = (struct gate){
		.low = (uint16_t)at,
		.selector = cs,
		.flags = 0x8e00,
		.middle = (uint16_t)(at >> 16),
		.high = (uint32_t)(at >> 32),
	};
}

// All 4 GiB, one to one, in pages of 2 MiB: the loader maps the first only.
static void map_devices(void)
{
	static uint64_t top[512] __attribute__((aligned(4096)));
	static uint64_t folders[512] __attribute__((aligned(4096)));
	static uint64_t pages[4][512] __attribute__((aligned(4096)));
	uint64_t i;

	for (i = 0; i < 4 * 512; i++)
		pages[i / 512][i % 512] = i << 21 | 0x83;
	for (i = 0; i < 4; i++)
		folders[i] = (uint64_t)pages[i] | 3;
	top[0] = (uint64_t)folders | 3;
	__asm__ volatile("mov %0, %%cr3" : : "r"(top) : "memory");
}

static void set_up_interrupts(void)
{
	struct {
		uint16_t size;
		void *base;
	} __attribute__((packed)) table = { sizeof(gates) - 1, gates };

	out(PORT_PIC1, 0xff);
	out(PORT_PIC2, 0xff);
	set_gate(VECTOR_CLOCK, on_clock);
	set_gate(VECTOR_SPURIOUS, on_spurious);
	__asm__ volatile("lidt %0" : : "m"(table));
	*reg(LAPIC + LAPIC_SPURIOUS) = LAPIC_ENABLED | VECTOR_SPURIOUS;
	*reg(LAPIC + LAPIC_TIMER_DIVIDE) = DIVIDE_BY_16;
	*reg(LAPIC + LAPIC_LVT_TIMER) = LAPIC_MASKED | VECTOR_SPURIOUS;
	// to the first processor, edge, active high
	*reg(IOAPIC) = 0x10 + 2 * IRQ_CLOCK + 1;
	*reg(IOAPIC + 0x10) = 0;
	*reg(IOAPIC) = 0x10 + 2 * IRQ_CLOCK;
	*reg(IOAPIC + 0x10) = VECTOR_CLOCK;
}

static void start_time(void)
{
	*reg(LAPIC + LAPIC_TIMER_START) = UINT32_MAX;
}

static uint64_t time_ns(void)
{
	return (UINT32_MAX - (uint64_t)*reg(LAPIC + LAPIC_TIMER_LEFT)) * TIMER_NS;
}

static void sleep_until_interrupt(void)
{
	__asm__ volatile("sti; hlt; cli" : : : "memory");
}

// Reading the time is an exit from the guest: it is not done at each interrupt.
static void sleep_for_interrupts(uint64_t n)
{
	uint64_t end = interrupts + n;

	while (interrupts < end)
		sleep_until_interrupt();
}

// With interrupts off.
static void be_busy(uint64_t ns)
{
	uint64_t until = time_ns() + ns;

	while (time_ns() < until)
		__asm__ volatile("pause");
}

// ---- the counts ---------------------------------------------------------------

struct sample {
	uint64_t us, count, due;
};

static struct sample take(unsigned hz)
{
	uint64_t ns = time_ns();

	return (struct sample){ ns / 1000, interrupts, ns * hz / SECOND_NS };
}

static void print_sample(const char *prefix, struct sample s)
{
	print(prefix);
	print_number("us=", s.us);
	print(prefix);
	print_number("count=", s.count);
	print(prefix);
	print_number("due=", s.due);
}

// Interrupts by `flag` from now on.
static void enable(uint8_t flag)
{
	clock_write(REG_B, B_24H);
	(void)clock_read(REG_C);
	interrupts = 0;
	wanted = flag;
	start_time();
	clock_write(REG_B, B_24H | flag);
}

static void count_ticks(const char *name, uint8_t rate, uint64_t busy_ns)
{
	unsigned hz = 65536u >> rate;
	struct sample run, end;

	clock_write(REG_A, 0x20 | rate);
	enable(B_PIE);
	while (time_ns() < RUN_NS) {
		sleep_for_interrupts(hz / 16);
		if (busy_ns)
			be_busy(busy_ns);
	}
	run = take(hz);
	do {
		sleep_until_interrupt();
		end = take(hz);
	} while (end.count + 1 < end.due && end.us < (RUN_NS + SECOND_NS) / 1000);
	clock_write(REG_B, B_24H);
	print("LULL:ticks ");
	print(name);
	print_sample(" ", run);
	print_sample(" end-", end);
	print("\n");
}

static void count_seconds(const char *name, uint8_t flag)
{
	enable(flag);
	while (time_ns() < 3 * SECOND_NS)
		sleep_until_interrupt();
	print("LULL:");
	print(name);
	print_sample(" ", take(1));
	print("\n");
	clock_write(REG_B, B_24H);
}

static void wait_for_alarm_in_an_hour(void)
{
	uint8_t hour = clock_read(REG_HOUR);

	hour = hour == 0x23 ? 0 : (hour & 0xf) == 9 ? hour + 7 : hour + 1; // BCD
	clock_write(REG_HOUR + 1, hour);
	clock_write(REG_MINUTE + 1, clock_read(REG_MINUTE));
	clock_write(REG_SECOND + 1, clock_read(REG_SECOND));
	enable(B_AIE);
	print("LULL:hour set\n");
	sleep_for_interrupts(1);
	print("LULL:hour");
	print_sample(" ", take(1));
	print("\n");
	clock_write(REG_B, B_24H);
}

static int has_word(const char *line, const char *word)
{
	while (*line) {
		const char *at = word;

		while (*at && *line == *at)
			line++, at++;
		if (!*at && (!*line || *line == ' '))
			return 1;
		while (*line && *line++ != ' ')
			;
	}
	return 0;
}

static void run(const char *line)
{
	uint8_t index;

	if (has_word(line, "64"))
		count_ticks("64", 10, 0);
	if (has_word(line, "1024"))
		count_ticks("1024", 6, 0);
	if (has_word(line, "8192"))
		count_ticks("8192", 3, 0);
	if (has_word(line, "slow"))
		count_ticks("slow", 6, SECOND_NS / 128);
	if (has_word(line, "hour"))
		wait_for_alarm_in_an_hour();
	if (!has_word(line, "seconds"))
		return;
	count_seconds("updates", B_UIE);
	for (index = 1; index <= 5; index += 2) // an alarm every second
		clock_write(index, 0xff);
	count_seconds("alarms", B_AIE);
}

__attribute__((noreturn, used)) static void begin(uint64_t boot_params)
{
	map_devices();
	set_up_interrupts();
	run((const char *)(uint64_t)*reg(boot_params + CMD_LINE_PTR));
	be_busy(SECOND_NS / 20); // what was printed goes out first
	out(PORT_SLEEP, SLEEP_S5);
	for (;;)
		__asm__ volatile("hlt");
}

static uint8_t stack[16384] __attribute__((aligned(16), used));

__asm__(".globl _start\n"
	"_start:\n"
	"	cli\n"
	"	lea stack + 16384(%rip), %rsp\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsi, %rdi\n"
	"	call begin\n");
