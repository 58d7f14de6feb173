#!/bin/sh
# Builds the image of deploy/container/Dockerfile where no container daemon runs, starts a gateway from it and asks
# whether it is ready.
#   scripts/image-without-daemon.sh <folder that is not there yet>
# It takes root on Debian, and 20 GB. buildah runs in a Debian of its own in that folder: nothing is installed. In place
# of the base image from a registry stands one of Debian's packages, with this machine's npm and the Node of this
# checkout. The image is made of the last commit.
set -eu
[ $# -eq 1 ] && [ ! -e "$1" ] || { echo "usage: $0 <folder that is not there yet>" >&2; exit 2; }
checkout=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/tools"
cd "$1"
here=$(pwd)

apt-get -o APT::Sandbox::User=root download debootstrap
dpkg-deb -x debootstrap_*.deb tools
DEBOOTSTRAP_DIR="$here/tools/usr/share/debootstrap" tools/usr/sbin/debootstrap --variant=minbase \
  --include=ca-certificates,libatomic1,libstdc++6 bookworm base http://deb.debian.org/debian >debootstrap.log
cp -a base builder
chroot builder apt-get install -y --no-install-recommends buildah >buildah.log 2>&1

cp "$(readlink -f "$checkout/node_modules/.bin/node")" base/usr/local/bin/node
mkdir -p base/usr/local/lib/node_modules
cp -r "$(npm root --global)/npm" base/usr/local/lib/node_modules/
for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "base/usr/local/bin/$name"; done
chroot base useradd -m -u 1000 node
mkdir -p builder/work/context
tar -C base -cf builder/work/base.tar .
git -C "$checkout" archive HEAD | tar -x -C builder/work/context

cat >builder/work/build.sh <<'BUILD'
set -e
cd /work
echo '{"default":[{"type":"insecureAcceptAnything"}]}' >policy.json
store='--root /work/store --runroot /work/run --storage-driver vfs'
base=$(buildah $store from --signature-policy policy.json scratch)
buildah $store add "$base" base.tar / >/dev/null
buildah $store config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$base"
buildah $store commit --signature-policy policy.json "$base" docker.io/library/node:26-trixie-slim
buildah $store rm "$base" >/dev/null
buildah $store bud --signature-policy policy.json --isolation chroot --pull-never --network host --format docker \
  -f context/deploy/container/Dockerfile -t tollgate context
buildah $store images
BUILD
cat >builder/work/start.sh <<'START'
set -e
cd /work
store='--root /work/store --runroot /work/run --storage-driver vfs'
made=$(buildah $store from --signature-policy policy.json --pull-never localhost/tollgate)
# As the image is run: its user, its data, its command. The port is one of this machine.
buildah $store run --isolation chroot --network host --user node --env PORT=18402 \
  --env TOLLGATE_ADMIN_KEY=0123456789012345678901234567890123456789 "$made" -- tollgate serve &
gateway=$!
trap 'kill -TERM $gateway' EXIT
buildah $store run --isolation chroot --network host --user node "$made" -- node -e '
  const ready = () => fetch("http://127.0.0.1:18402/health/ready").then((answer) => answer.ok, () => false);
  for (let tries = 0; tries < 120; tries += 1) {
    if (await ready()) { console.log("The gateway of the image is ready, as user", process.getuid()); process.exit(0); }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  process.exit(1);'
START
# The mounts are gone when this shell ends.
unshare --mount sh -ec '
mount --bind builder builder; cd builder
for each in proc sys dev; do mount --rbind /$each $each; done
chroot . sh /work/build.sh
chroot . sh /work/start.sh'
