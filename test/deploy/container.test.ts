import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { environmentOfMachine } from '../support/named-programs.ts';
import { unpackedAt, unpackedEnvironment, unpackPackage } from '../support/debian-packages.ts';

const FOLDER = resolve(import.meta.dirname, '../../deploy/container');
const OPTIONS = readFileSync(resolve(FOLDER, '../../docs/reference/configuration.md'), 'utf8');
/** The script makes it. */
const MADE = 'secrets/';

interface Service {
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}
const { services } = parse(readFileSync(join(FOLDER, 'compose.yaml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>;
};

it('is a file that compose reads, with the secrets that the script makes once', () => {
  const copy = mkdtempSync(join(tmpdir(), 'tollgate-compose-'));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  cpSync(FOLDER, copy, { recursive: true });
  const file = join(copy, 'compose.yaml');
  // Debian's compose is older than this member.
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^name: tollgate\n/m, ''));
  const makeSecrets = (env: NodeJS.ProcessEnv = environmentOfMachine()) =>
    execFileSync('/bin/sh', [join(copy, 'secrets.sh')], { env, encoding: 'utf8', stdio: 'pipe' });
  // Without od, for example, all of them would be empty.
  const programs = join(copy, 'programs');
  mkdirSync(programs);
  for (const name of ['dirname', 'head', 'mkdir', 'tr']) symlinkSync(join('/usr/bin', name), join(programs, name));
  expect(() => makeSecrets({ PATH: programs })).toThrow('no random numbers');
  expect(makeSecrets()).toContain('Made secrets/');
  expect(() => makeSecrets()).toThrow('nothing was changed');
  // Prometheus runs as another user: what it may read is the key of the figures, and not the admin key.
  const modeOf = (name: string) => (statSync(join(copy, 'secrets', name)).mode & 0o777).toString(8);
  expect(['gateway.env', 'postgres.env', 'metrics-key'].map(modeOf)).toEqual(['600', '600', '444']);
  const name = 'docker-compose';
  if (!existsSync(unpackedAt(name))) unpackPackage(name, name);
  const unpacked = join(unpackedAt(name), 'usr');
  // It is unpacked with compose where the machine has none.
  const python = ['/usr/bin/python3', join(unpacked, 'bin/python3')].find((one) => existsSync(one))!;
  const env = {
    ...unpackedEnvironment(name),
    ...(python.startsWith(unpacked) ? { PYTHONHOME: unpacked } : {}),
    PYTHONPATH: join(unpacked, 'lib/python3/dist-packages'),
    GATE_DOMAIN: 'gateway.example',
  };
  const text = execFileSync(python, [join(unpacked, 'bin', name), '-f', file, 'config'], {
    env,
    encoding: 'utf8',
    stdio: 'pipe',
  });
  const read = parse(text) as { readonly services: Readonly<Record<string, Service>> };
  expect(Object.keys(read.services).toSorted()).toEqual(Object.keys(services).toSorted());
  expect(read.services['gateway-1']!.environment).toMatchObject({
    TOLLGATE_IDENTITY_SEED: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    TOLLGATE_PUBLIC_URL: 'https://gateway.example',
  });
}, 200_000);

it('mounts files that exist', () => {
  const mounted = Object.values(services)
    .flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0]!))
    .filter((path) => path.startsWith('.') && !path.includes(MADE));
  expect(mounted.length).toBeGreaterThan(4);
  for (const path of mounted) expect.soft(existsSync(join(FOLDER, path)), path).toBe(true);
});

it('gives the gateways variables that they read, and each its own address', () => {
  const gateways = ['gateway-1', 'gateway-2'].map((name) => services[name]?.environment ?? {});
  for (const environment of gateways)
    for (const name of Object.keys(environment)) expect(OPTIONS).toContain(`\`${name}\``);
  expect(new Set(gateways.map((one) => one['TOLLGATE_CLUSTER_URL'])).size).toBe(2);
  const made = readFileSync(join(FOLDER, 'secrets.sh'), 'utf8').match(/(?:TOLLGATE_[A-Z_]+|DATABASE_URL)(?==)/g) ?? [];
  expect(made.length).toBe(4);
  for (const name of made) expect(OPTIONS).toContain(`\`${name}\``);
});
