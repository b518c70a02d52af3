/* Prints every route as "METHOD path phases", for the comparison with docs/openapi.yaml. */
#include <stdio.h>

#include "api/router.h"
#include "vmm/control.h"

static const char *phases_name(const struct route *r)
{
	if (r->phases == PHASES_BEFORE)
		return "before";
	return r->phases == PHASES_AFTER ? "after" : "any";
}

/* The fields of a body, for the second part of the comparison. */
static void print_fields(const struct route *r)
{
	size_t i;

	for (i = 0; r->fields && i < r->fields->count; i++) {
		if (r->fields->fields[i].kind != FIELD_REFUSED)
			printf("%s %s . %s\n", api_method_name(r->method), r->path,
			       r->fields->fields[i].name);
	}
}

int main(void)
{
	const struct route *tables[] = { routes_firecracker, routes_v1 }, *r;
	size_t i;

	for (i = 0; i < 2; i++) {
		for (r = tables[i]; r->path; r++) {
			printf("%s %s %s\n", api_method_name(r->method), r->path, phases_name(r));
			print_fields(r);
		}
	}
	return 0;
}
