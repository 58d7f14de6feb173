#!/bin/sh
# Runs a script with the checkout's own Node, which npm puts first on PATH. If there is none that starts here, the Node
# that runs npm first puts one there.
node="${0%/*}/../node_modules/.bin/node"
"$node" --version >/dev/null 2>&1 || "${npm_node_execpath:-node}" "${0%/*}/working-node.mjs" || exit 1
exec node "$@"
