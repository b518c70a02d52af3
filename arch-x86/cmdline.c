/*
 * Building the command line. Threads: main. Locks: none.
 */
#include "arch-x86/cmdline.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "vmm/base/buf.h"
#include "vmm/loader.h"

/* Room for more than is allowed, so that the error can say how much it was. */
#define BUILD_MAX (LIMIT_CMDLINE * 8)

/* Takes the next word, as Linux's parser sees it: spaces in quotes do not end it. */
static size_t next_word(const char **text, const char **ret_word)
{
	const char *p = *text;
	bool quoted = false;

	while (*p == ' ')
		p++;
	*ret_word = p;
	while (*p && (quoted || *p != ' ')) {
		if (*p == '"')
			quoted = !quoted;
		p++;
	}
	*text = p;
	return (size_t)(p - *ret_word);
}

/*
 * Finds a word among the kernel's arguments. With "--" that is the end of
 * those, where the arguments for init begin.
 */
static const char *find_word(const char *args, const char *wanted)
{
	const char *word;
	size_t len;

	while ((len = next_word(&args, &word)) > 0) {
		if (len == strlen(wanted) && !memcmp(word, wanted, len))
			return word;
		if (len == 2 && !memcmp(word, "--", 2))
			return NULL;
	}
	return NULL;
}

static void add_machine(struct buf *b, const struct cmdline_config *c, bool pci_off)
{
	uint32_t i;

	if (!pci_off)
		buf_printf(b, " pci=off");
	if (c->root && c->root->partuuid[0])
		buf_printf(b, " root=PARTUUID=%s", c->root->partuuid);
	else if (c->root)
		buf_printf(b, " root=/dev/vda");
	if (c->root)
		buf_printf(b, " %s", c->root->is_read_only ? "ro" : "rw");
	for (i = 0; i < c->slot_count; i++)
		buf_printf(b, " virtio_mmio.device=%lluK@0x%llx:%u", LAYOUT_VIRTIO_BYTES / 1024,
			   (unsigned long long)c->slots[i].base, c->slots[i].gsi);
}

/* Returns how many characters are the machine's, not the client's. */
static size_t build(struct buf *b, const struct cmdline_config *c)
{
	const char *args = c->boot_args ? c->boot_args : CMDLINE_DEFAULT;
	const char *init_args = find_word(args, "--");
	size_t len = init_args ? (size_t)(init_args - args) : strlen(args), added;

	while (len > 0 && args[len - 1] == ' ')
		len--;
	if (len)
		buf_append(b, args, len);
	added = b->len;
	add_machine(b, c, find_word(args, "pci=off") != NULL);
	added = b->len - added;
	if (init_args)
		buf_printf(b, " %s", init_args);
	return added;
}

int cmdline_build(const struct cmdline_config *c, char ret[LIMIT_CMDLINE], struct error *err)
{
	const char *text;
	struct buf b;
	size_t added;
	int code;

	buf_init(&b, BUILD_MAX);
	added = build(&b, c);
	if (buf_failed(&b)) {
		code = error_set(err, -E2BIG, "boot_args: the command line does not fit %d bytes",
				 LIMIT_CMDLINE);
	} else {
		text = buf_text(&b);
		while (*text == ' ')
			text++;
		code = loader_check_cmdline(text, added, err);
		if (code == 0)
			memcpy(ret, text, strlen(text) + 1);
	}
	buf_fini(&b);
	return code;
}
