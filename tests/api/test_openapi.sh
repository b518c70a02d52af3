#!/bin/sh
# docs/openapi.yaml and the route tables must tell the same story: the same
# paths, methods, phases (x-phases) and body fields.
#
# Usage: test_openapi.sh PRINT_ROUTES OPENAPI_YAML
#
# The file is read by its indentation, which is therefore part of its form:
# paths at two blanks, methods at four, x-phases and the body's $ref at deeper
# ones; schemas at four, their properties at eight.
set -eu

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

"$1" | LC_ALL=C sort > "$here/table"

awk '
	/^[a-z]/ { section = $1 }
	section == "components:" && /^    [A-Za-z0-9]+:$/ { schema = $1; sub(":", "", schema) }
	section == "components:" && /^        [a-z_0-9-]+:/ {
		name = $1; sub(":", "", name)
		if (in_properties) fields[schema] = fields[schema] " " name
	}
	section == "components:" && /^      [a-z]/ { in_properties = ($1 == "properties:") }
	section == "paths:" && /^  \/.*:$/ { path = $1; sub(":$", "", path); body = 0 }
	section == "paths:" && /^    (get|put|patch|delete|post):$/ {
		method = toupper($1); sub(":", "", method); body = 0
	}
	section == "paths:" && /^      x-phases:/ {
		print method, path, $2
	}
	section == "paths:" && /^      [a-z]/ { body = ($1 == "requestBody:") }
	section == "paths:" && body && /\$ref:/ {
		name = $2; gsub(/["'"'"']/, "", name); sub(".*/", "", name)
		bodies[method " " path] = name
	}
	END {
		for (b in bodies) {
			n = split(fields[bodies[b]], f, " ")
			for (i = 1; i <= n; i++) print b, ".", f[i]
		}
	}
' "$2" | LC_ALL=C sort > "$here/document"

if ! diff -u "$here/table" "$here/document"; then
	echo "openapi: the route tables (-) and $2 (+) differ" >&2
	exit 1
fi
echo "openapi: $(grep -vc ' \. ' "$here/table") routes agree"
