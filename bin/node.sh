#!/bin/sh
# Runs a script with the Node that npm puts first on PATH: the checkout's own. If that one does not start here, the Node
# that runs npm first brings one that does.
node --version >/dev/null 2>&1 || "${npm_node_execpath:?run this by npm}" "${0%/*}/working-node.mjs" || exit 1
exec node "$@"
