#!/bin/sh
# Builds the image of deploy/container/Dockerfile where no container daemon runs, and starts a gateway from it.
#   scripts/image-without-daemon.sh <folder that is not there yet>
# It takes root on Debian, a quarter of an hour and 10 GB. buildah and debootstrap are unpacked in the folder, not
# installed. In place of the base image from a registry stands one of Debian's packages, this machine's npm and the Node
# of this checkout. The image is made of the last commit.
set -eu
[ $# -eq 1 ] && [ ! -e "$1" ] || { echo "usage: $0 <folder that is not there yet>" >&2; exit 2; }
checkout=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/packages" "$1/tools" "$1/context"
cd "$1"
here=$(pwd)

apt='apt-get -o APT::Sandbox::User=root'
wanted=$($apt -s install --no-install-recommends buildah debootstrap | awk '/^Inst /{print $2}')
(cd packages && $apt download $wanted buildah debootstrap >/dev/null && for file in *.deb; do dpkg-deb -x "$file" "$here/tools"; done)

DEBOOTSTRAP_DIR="$here/tools/usr/share/debootstrap" "$here/tools/usr/sbin/debootstrap" --variant=minbase \
  --include=ca-certificates,libatomic1,libstdc++6 bookworm base http://deb.debian.org/debian >debootstrap.log
cp "$checkout/node_modules/.bin/node" base/usr/local/bin/node
mkdir -p base/usr/local/lib/node_modules
cp -r "$(npm root --global)/npm" base/usr/local/lib/node_modules/
for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "base/usr/local/bin/$name"; done
chroot base useradd -m -u 1000 node
tar -C base -cf base.tar .

libraries=$(find "$here/tools" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
PATH="$here/tools/usr/bin:$here/tools/usr/sbin:$PATH"
echo '{"default":[{"type":"insecureAcceptAnything"}]}' >policy.json
: >registries.conf
buildah() {
  command=$1
  shift
  LD_LIBRARY_PATH=$libraries "$here/tools/usr/bin/buildah" --root "$here/storage" --runroot "$here/run" \
    --storage-driver vfs --registries-conf "$here/registries.conf" "$command" "$@"
}
container=$(buildah from --signature-policy policy.json scratch)
buildah add "$container" base.tar / >/dev/null
buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
buildah commit --signature-policy policy.json "$container" docker.io/library/node:26-trixie-slim
buildah rm "$container" >/dev/null

git -C "$checkout" archive HEAD | tar -x -C context
buildah bud --signature-policy policy.json --isolation chroot --pull-never --network host --format docker \
  -f context/deploy/container/Dockerfile -t tollgate context
buildah images
