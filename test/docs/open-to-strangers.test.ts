import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { SECTIONS } from '../../src/server/config/options.ts';
import { ROOT } from '../architecture/source.ts';
import { startSpine } from '../support/spine.ts';

// What a gateway for production shows and allows to people without a key, before its operator opens it to others.

const options = Object.entries(SECTIONS).flatMap(([section, table]) =>
  Object.entries(table).map(([key, option]) => ({ name: `${section}.${key}`, option })),
);

it('each option that is open to strangers by default is on the page about opening a gateway, and no other', () => {
  const page = readFileSync(join(ROOT, 'docs/run/start-a-gateway.md'), 'utf8');
  const rows = /\n\*\*What strangers may do\*\*[^|]*\n((?:\|.*\n)+)/.exec(page)![1]!.split('\n').slice(2);
  const listed = rows.flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`([\w.]+)`/g)].map(([, name]) => name!),
  );
  const open = options.filter(({ option }) => option.isOpen).map(({ name }) => name);
  expect(listed.toSorted()).toEqual(open.toSorted());
});

it('what is on by default is marked as open, or is not about strangers', () => {
  const on = options.filter(({ option: { fallback } }) => ['on', 'open', 'anyone', true].includes(fallback as string));
  expect(on.filter(({ option }) => !option.isOpen).map(({ name }) => name)).toEqual([]);
});

/** What the marketplace, clients and load balancers need. */
const ALWAYS = [
  '/.well-known/agent-card.json',
  '/.well-known/jwks.json',
  '/admin/v1/session',
  '/api/v1/agents',
  '/api/v1/auth/nonce',
  '/api/v1/auth/session',
  '/api/v1/embeddings/models',
  '/api/v1/images/models',
  '/api/v1/models',
  '/api/v1/models/count',
  '/api/v1/payments/chains',
  '/api/v1/ping',
  '/api/v1/providers',
  '/api/v1/services',
  '/api/v1/tools',
  '/api/v1/videos/models',
  '/api/v1beta/models',
  '/health/live',
  '/health/ready',
];

it.each([
  ['by default', '', ['/api/v1/analytics/public', '/api/v1/analytics/service']],
  ['with analytics.public off', '[analytics]\npublic = "off"\n', []],
] as const)(
  'a stranger reads the marketplace %s, and of figures what is told on the page',
  async (_name, toml, figures) => {
    const spine = await startSpine({ mode: 'production', toml });
    onTestFinished(() => spine.stop());
    const { paths } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
      readonly paths: Readonly<Record<string, { readonly get?: object }>>;
    };
    const plain = Object.keys(paths).filter((path) => paths[path]!.get !== undefined && !path.includes('{'));
    const statuses = await Promise.all(
      plain.map(async (path) => {
        const { status, body } = await fetch(`${spine.origin}${path}`);
        await body?.cancel();
        return { path, status };
      }),
    );
    const read = statuses.filter(({ status }) => status < 300).map(({ path }) => path);
    expect(read.toSorted()).toEqual([...ALWAYS, ...figures].toSorted());
    expect(await spine.faults()).toEqual([]);
  },
);
