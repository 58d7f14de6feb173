import { expect, test } from 'vitest';
import { createGuardedFetch } from '../../../../../src/gateway/network/upstream/guarded-fetch.ts';
import { watchConnectionAttempts } from './connection-attempts.ts';
import { listenOn } from './receiver.ts';

test.each([300, 301, 302, 303, 307, 308])(
  '%i is a reply like any other, and nobody goes where it points',
  async (status) => {
    const target = await listenOn('127.0.0.1', (_request, response) => void response.end());
    const receiver = await listenOn(
      '127.0.0.2',
      (_request, response) => void response.writeHead(status, { location: target.origin }).end('moved'),
    );
    const attempts = watchConnectionAttempts();
    const reply = await createGuardedFetch({ allowPrivate: true })(receiver.origin, {
      method: 'POST',
      body: '{}',
      timeoutMs: 5_000,
      bodyBytesMax: 100,
    });
    expect(reply).toMatchObject({ status, headers: { location: target.origin } });
    expect(attempts).toEqual(['127.0.0.2']);
    expect(target.connections()).toBe(0);
  },
);
