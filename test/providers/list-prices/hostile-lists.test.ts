import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { block, listing, offer } from './offering.ts';

it('a list that is hostile does no harm', async () => {
  const { url } = await listing([
    {},
    { id: 5 },
    { id: '__proto__' },
    { id: 'constructor' },
    { id: '../../x' },
    { id: 'gpt-5\u202e' },
    { id: 'gpt-5', context_length: -5, pricing: { prompt: 'NaN', completion: '-1' }, architecture: 7 },
    { id: 'gpt-5' },
    { id: 'gpt-4.1', context_length: 1e9 },
    'x'.repeat(100_000),
  ]);
  const { names, service, withheld } = await offer(block('openai', url));
  expect(names).toEqual(['openai/gpt-5']);
  expect(withheld).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ name: 'openai/gpt-4.1', why: expect.stringContaining('1000000000 tokens') }),
    ]),
  );
  expect(service('openai/gpt-5').model.contextLength).toBe(400_000);
});

it('a list of nothing but structure is not read', async () => {
  const { url } = await listing(Array.from({ length: 300_000 }, () => ({})));
  expect((await offer(block('openai', url))).problem).toContain('did not answer with a list of models');
});

it('a list that goes on for ever is given up', async () => {
  const server = createServer((_, response) => {
    const more = () => void (response.destroyed || response.write(' '.repeat(1024 * 1024), () => setImmediate(more)));
    more();
  });
  const port = await findFreePort();
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  expect((await offer(block('groq', `http://127.0.0.1:${port}/v1`))).problem).toMatch(/more than \d+ bytes|no answer/);
});
