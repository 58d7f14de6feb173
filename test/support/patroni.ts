import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { findFreePort } from './free-port.ts';
import { environmentOfMachine, foldersOfMachine } from './named-programs.ts';
import { killTree } from './process-tree.ts';
import { createKeeper, type ServerProcess } from './server-process.ts';
import type { Defer } from './standby.ts';

/** Debian's id of `nobody`: PostgreSQL does not run as root. */
const NOBODY = 65_534;
const PASSWORD = 'password-of-the-tests';
const SCOPE = 'ledger';
const run = promisify(execFile);

/** The programs that the cluster consists of. */
interface Programs {
  readonly patroni: string;
  readonly patronictl: string;
  readonly etcd: string;
  readonly haproxy: string;
  /** Folder of `initdb` and `postgres`. */
  readonly postgres: string;
}

/** The programs of Debian's packages, or a text that says what is missing. */
export function findPatroni(): Programs | string {
  const missing: string[] = [];
  const find = (name: string): string => {
    const found = [...foldersOfMachine(), '/usr/sbin'].map((folder) => join(folder, name)).find(existsSync);
    if (found === undefined) missing.push(name);
    return found ?? '';
  };
  const [patroni, patronictl, etcd, haproxy] = ['patroni', 'patronictl', 'etcd', 'haproxy'].map(find) as [
    string,
    string,
    string,
    string,
  ];
  const debian = '/usr/lib/postgresql';
  // The version that Debian built together with its Patroni.
  const postgres = (existsSync(debian) ? readdirSync(debian) : [])
    .map((version) => join(debian, version, 'bin'))
    .findLast((folder) => existsSync(join(folder, 'initdb')));
  if (postgres === undefined) missing.push('postgresql');
  if (missing.length > 0)
    return `without ${missing.join(', ')} there is no Patroni cluster (Debian: apt-get install patroni etcd-server haproxy postgresql)`;
  return { patroni, patronictl, etcd, haproxy, postgres: postgres! };
}

/** PostgreSQL servers of which Patroni makes one the primary, with etcd, behind HAProxy. */
export interface PatroniCluster {
  /** Leads to the primary, through HAProxy. */
  readonly url: string;
  /** The name of the member that is the primary. */
  leader(): Promise<string>;
  /** Kills Patroni and PostgreSQL of a member, as if its machine were gone. */
  kill9(member: string): void;
  /** Starts Patroni of a member that was killed. */
  restart(member: string): void;
  /** Waits until all members run, and one of them is the synchronous standby. */
  whole(): Promise<void>;
  /** `patronictl switchover` to the synchronous standby. */
  switchover(): Promise<void>;
}

/**
 * Starts a cluster with synchronous replication, as docs/run/standby.md describes it. `timing` has the options `ttl`,
 * `loop_wait` and `retry_timeout` of Patroni, in seconds.
 */
export async function startPatroni(
  programs: Programs,
  {
    size,
    timing,
    defer,
  }: { readonly size: number; readonly timing: readonly [number, number, number]; readonly defer: Defer },
): Promise<PatroniCluster> {
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const home = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'tollgate-patroni-'));
  chmodSync(home, 0o755);
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const cleaner = createKeeper([home]);
  defer(cleaner.close);
  const env = { ...environmentOfMachine(), HOME: home, PGHOST: '127.0.0.1' };
  const keep = () => {
    const keeper = createKeeper([]);
    defer(keeper.close);
    return (file: string, args: readonly string[]) => keeper.start({ file, args, cwd: home, env, ...user });
  };
  const folder = (name: string) => {
    const path = join(home, name);
    mkdirSync(path, { mode: 0o700 });
    if (isRoot) chownSync(path, NOBODY, NOBODY);
    return path;
  };
  const write = (name: string, text: string) => {
    const path = join(home, name);
    writeFileSync(path, text);
    return path;
  };

  const [clients, peers] = [await findFreePort(), await findFreePort()];
  const etcd = `http://127.0.0.1:${clients}`;
  const peer = `http://127.0.0.1:${peers}`;
  const options = {
    'data-dir': folder('etcd'),
    name: 'etcd',
    'listen-client-urls': etcd,
    'advertise-client-urls': etcd,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `etcd=${peer}`,
  };
  keep()(
    programs.etcd,
    Object.entries(options).map(([name, value]) => `--${name}=${value}`),
  );
  const [ttl, loopWait, retryTimeout] = timing;
  const members = new Map<string, Member>();
  for (let index = 0; index < size; index += 1) {
    const name = `pg${index}`;
    const [port, rest] = [await findFreePort(), await findFreePort()];
    const file = write(
      `${name}.yml`,
      `scope: ${SCOPE}
name: ${name}
restapi: { listen: '127.0.0.1:${rest}', connect_address: '127.0.0.1:${rest}' }
etcd3: { host: '127.0.0.1:${clients}' }
bootstrap:
  dcs:
    ttl: ${ttl}
    loop_wait: ${loopWait}
    retry_timeout: ${retryTimeout}
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: { wal_log_hints: 'on', max_connections: 200, shared_buffers: 64MB }
  initdb: [{ encoding: UTF8 }, { locale: C }]
  pg_hba:
    - host replication replicator 127.0.0.1/32 scram-sha-256
    - host all all 127.0.0.1/32 scram-sha-256
postgresql:
  listen: 127.0.0.1:${port}
  connect_address: 127.0.0.1:${port}
  data_dir: ${join(folder(`${name}-home`), 'data')}
  bin_dir: ${programs.postgres}
  pgpass: ${join(home, `${name}-home`, 'pgpass')}
  parameters: { unix_socket_directories: '' }
  authentication:
    superuser: { username: postgres, password: ${PASSWORD} }
    replication: { username: replicator, password: ${PASSWORD} }
    rewind: { username: rewinder, password: ${PASSWORD} }
`,
    );
    members.set(name, { port, rest, file, start: keep(), running: null });
  }
  const start = (name: string) => {
    const member = members.get(name)!;
    member.running = member.start(programs.patroni, [member.file]);
  };
  for (const name of members.keys()) start(name);
  const kill = (name: string) => {
    const { running } = members.get(name)!;
    if (running) killTree(running.pid);
    // Patroni's server is no child of it.
    const postmaster = join(home, `${name}-home`, 'data', 'postmaster.pid');
    if (existsSync(postmaster)) killTree(Number(readFileSync(postmaster, 'utf8').split('\n')[0]));
  };
  defer(async () => {
    for (const name of members.keys()) kill(name);
  });

  const front = await findFreePort();
  const servers = [...members].map(([name, { port, rest }]) => `  server ${name} 127.0.0.1:${port} check port ${rest}`);
  keep()(programs.haproxy, [
    '-f',
    write(
      'haproxy.cfg',
      `defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 2s
listen primary
  bind 127.0.0.1:${front}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`,
    ),
  ]);

  const list = async (): Promise<readonly Listed[]> => {
    for (const { rest } of members.values()) {
      const response = await fetch(`http://127.0.0.1:${rest}/cluster`).catch(() => null);
      if (response?.ok) return ((await response.json()) as { members: readonly Listed[] }).members;
    }
    return [];
  };
  const cluster: PatroniCluster = {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${front}/postgres`,
    async leader() {
      return (await list()).find(({ role }) => role === 'leader')!.name;
    },
    kill9: kill,
    restart: start,
    async whole() {
      const roles = async () =>
        (await list())
          .filter(({ state }) => state === 'running' || state === 'streaming')
          .map(({ role }) => role)
          .toSorted();
      const rest = Array.from({ length: size - 2 }, () => 'replica');
      await expect
        .poll(roles, { timeout: 180_000, interval: 200 })
        .toEqual(['leader', ...rest, 'sync_standby'].toSorted());
    },
    async switchover() {
      const { file } = members.values().next().value!;
      await run(programs.patronictl, ['-c', file, 'switchover', SCOPE, '--force'], { env, ...user, cwd: home });
    },
  };
  await cluster.whole();
  return cluster;
}

interface Member {
  readonly port: number;
  readonly rest: number;
  readonly file: string;
  readonly start: (file: string, args: readonly string[]) => ServerProcess;
  running: ServerProcess | null;
}

interface Listed {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}
