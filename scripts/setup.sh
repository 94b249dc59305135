# Sourced by scripts/demo and scripts/test: make .venv from uv.lock with nothing installed but Python >= 3.11 and pip.
# Usage: setup_venv [uv sync options]

say() { printf 'leadtime setup: %s\n' "$*" >&2; }

find_python() {
  local candidate
  for candidate in "${LEADTIME_PYTHON:-}" python3.11 python3 python3.12 python3.13; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
    # The interpreter itself, not a shim that starts it: uv would take another path for another Python and start over.
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys._base_executable)'
      return 0
    fi
  done
  say "no Python 3.11 or newer found on PATH; install it (Debian: apt-get install python3 python3-pip) or set LEADTIME_PYTHON"
  return 2
}

setup_venv() {
  local python
  python=$(find_python) || return 2
  if [ ! -d .tools/uv ]; then
    say "installing uv into .tools (once)"
    PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --target .tools/uv 'uv==0.13.9' || {
      say "pip could not install uv; check that pip works and reaches the package index"
      return 3
    }
  fi
  command -v npm >/dev/null 2>&1 || say "npm not found: the page will draw its charts on the server (install Node.js for live charts)"
  say "installing leadtime into .venv (locked versions)"
  # Networks with a certificate authority of their own put it into the system's store; pip looks there, uv only if told.
  [ -e /etc/ssl/certs/ca-certificates.crt ] && export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
  UV_PYTHON_DOWNLOADS=never UV_PYTHON="$python" PYTHONPATH=.tools/uv "$python" -m uv sync --locked --quiet "$@" || return 3
}
