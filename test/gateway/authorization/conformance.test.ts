import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { createKeeper } from '../../support/server-process.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson } from './support/person.ts';
import { registerRaw } from './support/raw-client.ts';

/* The official conformance suite of MCP as the client of the authorization server, with a person beside it. */

const CLI = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development' });
});
afterAll(() => spine.stop());

test('the suite finds the metadata and gets a token, without a warning', async () => {
  const port = await findFreePort();
  const client = await registerRaw(spine.origin, { redirect_uris: [`http://127.0.0.1:${port}/callback`] });
  const keeper = createKeeper([]);
  try {
    const where = ['--url', spine.origin, '--resource', `${spine.origin}/mcp`, '--port', String(port)];
    const child = keeper.start({
      file: process.execPath,
      args: [CLI, 'authorization', ...where, '--client-id', client.id],
      env: { PATH: process.env['PATH'] ?? '', NO_COLOR: '1' },
    });
    await child.wrote('Waiting up to');
    const [url = ''] = /http\S+\/oauth\/authorize\?\S+/.exec(child.output()) ?? [];
    const person = createPerson(spine.origin, spine.key);
    await fetch(await person.allow(await person.open(url)));
    await child.exited;
    expect(child.exitCode, child.output()).toBe(0);
    expect(child.output()).not.toMatch(/FAILURE|WARNING|[1-9]\d* (?:failed|warnings)/);
  } finally {
    await keeper.close();
  }
});
