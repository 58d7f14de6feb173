import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { findLocalProviders } from '../../src/cli/local-providers.ts';

test('Ollama is found although the start keeps this process busy for longer than the probe may take', async () => {
  const ollama = createServer((_, response) => response.end('{"models":[]}'));
  ollama.listen(0, '127.0.0.1');
  await once(ollama, 'listening');
  onTestFinished(() => {
    ollama.closeAllConnections();
    ollama.close();
  });
  const found = findLocalProviders({ OLLAMA_HOST: `127.0.0.1:${(ollama.address() as AddressInfo).port}` });
  for (const begun = performance.now(); performance.now() - begun < 1_500;);
  expect((await found).map(({ name }) => name)).toEqual(['Ollama']);
});

test('an address that never answers is given up', async () => {
  const mute = createServer(() => {});
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  onTestFinished(() => {
    mute.closeAllConnections();
    mute.close();
  });
  expect(await findLocalProviders({ OLLAMA_HOST: `127.0.0.1:${(mute.address() as AddressInfo).port}` })).toEqual([]);
});
