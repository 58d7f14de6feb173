import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

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
