#!/bin/sh
# Makes the secrets of compose.yaml in ./secrets. Never overwrites one.
set -eu
cd "$(dirname "$0")"
umask 077
[ ! -e secrets ] || { echo "secrets/ is there already: nothing was changed" >&2; exit 1; }
random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
password=$(random)
metrics=$(random)
seed=$(random)
admin=$(random)
for each in "$password" "$metrics" "$seed" "$admin"; do
  [ "${#each}" -eq 64 ] || { echo "no random numbers: head, od and tr are needed, and /dev/urandom" >&2; exit 1; }
done
mkdir secrets
printf 'POSTGRES_USER=tollgate\nPOSTGRES_DB=tollgate\nPOSTGRES_PASSWORD=%s\n' "$password" > secrets/postgres.env
printf 'DATABASE_URL=postgres://tollgate:%s@postgres:5432/tollgate\nTOLLGATE_IDENTITY_SEED=%s\nTOLLGATE_ADMIN_KEY=%s\nTOLLGATE_METRICS_KEY=%s\n' \
  "$password" "$seed" "$admin" "$metrics" > secrets/gateway.env
# Prometheus runs as another user. This key reads figures, and nothing else.
printf '%s' "$metrics" > secrets/metrics-key
chmod 0444 secrets/metrics-key
chmod 0711 secrets
echo "Made secrets/. Keep a copy of secrets/gateway.env: without the identity seed nobody can check old receipts."
