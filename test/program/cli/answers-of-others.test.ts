import { once } from 'node:events';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

/** Something else than a gateway. Resolves with its port. */
async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

it('a file in the folder of a project does not get the admin key of the environment', async () => {
  const keys: (string | undefined)[] = [];
  const port = await listen(({ headers }, response) => {
    keys.push(headers.authorization);
    response.setHeader('content-type', 'application/json').end('{"data":[]}');
  });
  await mkdir(place.data);
  const file = {
    // It leads to this machine, but is not one of its addresses.
    base_url: `http://0.0.0.0:${port}`,
    admin_key: 'any',
    pid: process.pid,
    data_dir: await realpath(place.data),
    database: 'embedded',
  };
  await writeFile(join(place.data, 'gateway.json'), JSON.stringify(file));
  for (const command of [['account', 'list'], ['reload'], ['audit']]) {
    const { code, output } = await place.run(command, { TOLLGATE_ADMIN_KEY: ADMIN_KEY });
    expect
      .soft([command, code === 0, output])
      .toEqual([
        command,
        false,
        expect.stringContaining(`names a gateway on another machine: http://0.0.0.0:${port}\nIf you mean that one`),
      ]);
  }
  // These read the files themselves, so an address would not help them.
  for (const command of [['backup', 'own.tar'], ['restored']]) {
    const { code, output } = await place.run(command, { TOLLGATE_ADMIN_KEY: ADMIN_KEY });
    expect.soft([command, code]).toEqual([command, 1]);
    expect.soft(output).toContain(`${port}\nIf that gateway uses this directory, run this command there.`);
    expect.soft(output).not.toContain('--url');
  }
  expect(keys.filter((key) => key !== undefined)).toEqual([]);
  const named = ['account', 'list', '--url', `http://0.0.0.0:${port}`];
  expect((await place.run(named, { TOLLGATE_ADMIN_KEY: ADMIN_KEY })).code).toBe(0);
});

it('a command that reads the files itself does not advise to name an address', async () => {
  const { code, output } = await place.run(['backup', 'own.tar']);
  expect([code, output]).toEqual([1, expect.stringContaining('No gateway has run with the data directory')]);
  expect(output).not.toContain('--url');
});

it('an answer that breaks off is told in words', async () => {
  const port = await listen((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write('{"data":', () => response.destroy());
  });
  const args = ['account', 'list', '--url', `http://127.0.0.1:${port}`];
  const { code, output } = await place.run(args, { TOLLGATE_ADMIN_KEY: ADMIN_KEY });
  expect([code, output]).toEqual([1, expect.stringContaining('does not answer')]);
  expect(output).not.toContain('unexpected error');
});
