import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { architectureOf, type SystemPackage, unpackPackages } from './debian.ts';
import { gzipped, packTar, sha256 } from './tar.ts';

interface ImageOptions {
  /** The folder of the gateway's package with its `node`, as stageWithNode makes it. */
  readonly program: string;
  readonly version: string;
  readonly commit: string | null;
  readonly work: string;
  readonly out: string;
}

/** What Node needs of a system, and a shell for people who look into a container. */
const SYSTEM = ['libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1', 'busybox-static'];
const COMMANDS = ['sh', 'cat', 'env', 'find', 'id', 'ls', 'ps', 'wget'];
const USER = 1000;
const HEALTH =
  "fetch('http://127.0.0.1:' + process.env.PORT + '/health/ready').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))";
/** Docker's, which is no member of the specification: other engines pass it over. Times are nanoseconds. */
const HEALTHCHECK = {
  Test: ['CMD', 'node', '-e', HEALTH],
  Interval: 10e9,
  Timeout: 3e9,
  StartPeriod: 20e9,
};

/**
 * Writes the image as an archive of the OCI layout, for `docker load`, `podman load` and `skopeo copy oci-archive:…`.
 * No daemon is needed: the system's files are those of Debian's packages on this machine's list, unpacked.
 */
export function writeImage(options: ImageOptions): readonly SystemPackage[] {
  const { work, out, version, commit } = options;
  const layout = join(work, 'layout');
  const blobs = join(layout, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const store = (bytes: Buffer) => {
    const digest = sha256(bytes);
    writeFileSync(join(blobs, digest), bytes);
    return { digest: `sha256:${digest}`, size: bytes.byteLength };
  };
  const { root, packages } = stageSystem(work);
  const layers = [systemLayer(root, work), programLayer(options)].map((tar) => {
    const bytes = readFileSync(tar);
    return { diffId: `sha256:${sha256(bytes)}`, ...store(gzipped(bytes)) };
  });
  const config = {
    architecture: architectureOf(process.arch),
    os: 'linux',
    config: {
      User: 'node',
      ExposedPorts: { '8402/tcp': {} },
      Env: [
        'PATH=/usr/local/bin:/usr/bin:/bin',
        'MALLOC_ARENA_MAX=1',
        'NODE_ENV=production',
        'TOLLGATE_DATA=/data',
        'HOST=0.0.0.0',
        'PORT=8402',
      ],
      Entrypoint: ['node', '/usr/local/bin/tollgate'],
      Cmd: ['serve'],
      WorkingDir: '/data',
      Volumes: { '/data': {} },
      StopSignal: 'SIGTERM',
      Healthcheck: HEALTHCHECK,
      Labels: {
        'org.opencontainers.image.title': 'tollgate',
        'org.opencontainers.image.version': version,
        ...(commit === null ? {} : { 'org.opencontainers.image.revision': commit }),
      },
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
  };
  const manifest = store(
    json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...store(json(config)) },
      layers: layers.map(({ digest, size }) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        digest,
        size,
      })),
    }),
  );
  const index = {
    schemaVersion: 2,
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        ...manifest,
        platform: { architecture: config.architecture, os: 'linux' },
        annotations: {
          'org.opencontainers.image.ref.name': version,
          'io.containerd.image.name': `tollgate:${version}`,
        },
      },
    ],
  };
  writeFileSync(join(layout, 'index.json'), json(index));
  writeFileSync(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  packTar(layout, ['oci-layout', 'index.json', 'blobs'], out);
  return packages;
}

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** Debian's packages, and the files that a system has of none. */
function stageSystem(work: string): ReturnType<typeof unpackPackages> {
  const { root, packages } = unpackPackages(SYSTEM, process.arch, work);
  for (const [name, text] of [
    ['passwd', `root:x:0:0:root:/root:/bin/sh\nnode:x:${USER}:${USER}::/data:/bin/sh\n`],
    ['group', `root:x:0:\nnode:x:${USER}:\n`],
    ['nsswitch.conf', 'hosts: files dns\n'],
  ] as const) {
    mkdirSync(join(root, 'etc'), { recursive: true });
    writeFileSync(join(root, 'etc', name), text);
  }
  return { root, packages };
}

function systemLayer(root: string, work: string): string {
  const tar = join(work, 'system.tar');
  for (const folder of ['usr/bin', 'usr/lib', 'usr/local/bin', 'bin', 'lib'])
    mkdirSync(join(root, folder), { recursive: true });
  const busybox = readdirSync(root, { recursive: true, encoding: 'utf8' }).find(
    (path) => basename(path) === 'busybox',
  )!;
  for (const name of COMMANDS) {
    const place = name === 'sh' || name === 'cat' || name === 'ls' ? 'bin' : 'usr/bin';
    rmSync(join(root, place, name), { force: true });
    symlinkSync(`/${busybox}`, join(root, place, name));
  }
  packTar(root, readdirSync(root).toSorted(), tar);
  const empty = mkdtempSync(join(work, 'empty-'));
  for (const name of ['data', 'tmp']) mkdirSync(join(empty, name));
  packTar(empty, ['data'], tar, { id: USER, mode: '0700' });
  packTar(empty, ['tmp'], tar, { id: 0, mode: '1777' });
  return tar;
}

function programLayer({ program, work }: ImageOptions): string {
  const [root, tar] = [join(work, 'layer'), join(work, 'layer.tar')];
  const home = join(root, 'opt/tollgate/lib/node_modules/tollgate');
  cpSync(program, home, { recursive: true, verbatimSymlinks: true, filter: (path) => path !== join(program, 'node') });
  const bin = join(root, 'usr/local/bin');
  mkdirSync(bin, { recursive: true });
  copyFileSync(join(program, 'node'), join(bin, 'node'));
  symlinkSync('/opt/tollgate/lib/node_modules/tollgate/bin/tollgate.mjs', join(bin, 'tollgate'));
  packTar(root, ['opt', 'usr'], tar);
  return tar;
}
