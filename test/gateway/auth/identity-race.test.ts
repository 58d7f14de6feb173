import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

test('gateways that start at once in one directory get one identity', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-identity-'));
  const module = new URL('../../../src/gateway/auth/identity.ts', import.meta.url).href;
  // Every process waits for a line, so that all of them begin together.
  const program = `
    const { createIdentity } = await import(${JSON.stringify(module)});
    console.log('ready');
    process.stdin.once('data', () => { console.log(createIdentity({ dataDir: ${JSON.stringify(dataDir)} }).receiptKey.id); process.exit(); });
  `;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  await Promise.all(children.map((child) => once(child.stdout, 'data')));
  const outputs = children.map((child) => text(child.stdout));
  for (const child of children) child.stdin.write('go\n');
  const ids = (await Promise.all(outputs)).map((output) => output.trim());
  expect(new Set(ids).size).toBe(1);
  expect(ids[0]).toMatch(/^[\w-]{43}$/);
  expect(readdirSync(dataDir)).toEqual(['identity.json']);
});
