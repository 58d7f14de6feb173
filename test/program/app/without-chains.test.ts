import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { spineOfFile } from '../../support/of-file.ts';

// A gateway without chains says so where money is asked for, and loads nothing of what handles it.

const spine = spineOfFile();

test.each([
  ['POST', '/api/v1/topup', { amount_usd: 1 }],
  ['GET', '/api/v1/deposits', undefined],
  ['GET', '/api/v1/deposits/x', undefined],
  ['POST', '/api/v1/deposits/claim', {}],
  ['POST', '/api/v1/withdrawals', { network: 'eip155:8453', amount_usd: 1, source: 'balance' }],
  // Before the fields are asked for.
  ['POST', '/api/v1/withdrawals', {}],
  ['POST', '/api/v1/wallets', {}],
  ['POST', '/api/v1/topup/transaction', {}],
  ['GET', '/api/v1/withdrawals', undefined],
  ['GET', '/api/v1/withdrawals/x', undefined],
  ['POST', '/api/v1/withdrawals/x/cancel', {}],
  ['GET', '/api/v1/wallets', undefined],
  ['POST', '/api/v1/wallets', { sign_in: 'x' }],
  ['DELETE', '/api/v1/wallets/x', undefined],
  ['GET', '/admin/v1/payments', undefined],
  ['GET', '/admin/v1/deposits', undefined],
  ['POST', '/admin/v1/deposits/x/attribute', { account: 'tollgate:local:tester' }],
  ['POST', '/admin/v1/withdrawals', { network: 'eip155:8453', amount_usd: 1, address: 'x' }],
  ['GET', '/admin/v1/withdrawals', undefined],
])('%s %s: no money goes over chains here', async (method, path, body) => {
  const key = path.startsWith('/admin') ? spine.adminKey : spine.key;
  const answer = await fetch(spine.origin + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  expect([answer.status, await answer.json()]).toMatchObject([
    404,
    { error: { type: 'not_found', message: expect.stringContaining('no payments over chains') } },
  ]);
});

test('there is nothing to pay with, to compare or to measure', async () => {
  expect(await (await spine.get('/payments/chains')).json()).toEqual({ data: [] });
  const audit = await fetch(`${spine.origin}/admin/v1/audit?chain=true`, {
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect(await audit.json()).toMatchObject({ data: { ok: true, chains: { ok: true, chains: [] } } });
  expect(
    await (await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } })).text(),
  ).not.toContain('tollgate_treasury');
});

/** Starts a gateway in a process that notes what it loads, and ends it. */
const PROBE = `
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
const { createApp } = await import(process.argv[1] + '/src/program/app/app.ts');
const { loadConfig } = await import(process.argv[1] + '/src/server/config/file.ts');
const config = loadConfig({ file: 'x.toml', text: '[sign_in]\\ndomains = ["x.test"]\\n', env: {}, mode: 'production', overrides: { 'server.data_dir': process.argv[2], 'server.port': 0 } });
const app = await createApp(config, { writeLog() {} });
await app.listen();
await app.close();
console.log(JSON.stringify(loaded));
`;

test('and nothing of the chains or their libraries is loaded', () => {
  const data = mkdtempSync(join(tmpdir(), 'tollgate-probe-'));
  try {
    const root = resolve(import.meta.dirname, '../../..');
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', PROBE, root, data], {
      encoding: 'utf8',
      cwd: root,
    });
    const loaded = JSON.parse(output.trim().split('\n').at(-1)!) as string[];
    expect(loaded.some((url) => url.endsWith('/src/program/app/payments.ts'))).toBe(true);
    expect(
      loaded.filter((url) =>
        /node_modules\/(@x402|@solana|@solana-program)\/|src\/billing\/chains\/(chains\.ts|evm|solana)|src\/providers\/proxy\//.test(
          url,
        ),
      ),
    ).toEqual([]);
  } finally {
    rmSync(data, { recursive: true });
  }
});
