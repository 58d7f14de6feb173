import type { FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import { LIMITS } from '../accounts/gateway-world.ts';
import { createServer } from '#http';
import { checkedWith } from '../../support/checked-with.ts';

checkedWith('fastify', '5.12.8');

test('a plugin without a name gets one, also below another, and one with a name keeps it', async () => {
  const server = createServer({ limits: LIMITS, onError: () => {} });
  const names: string[] = [];
  const note = async (app: FastifyInstance) => void names.push(app.pluginName);
  server.register(async (app) => {
    await note(app);
    await app.register(Object.assign(async (own: FastifyInstance) => note(own)));
    await app.register(note);
  });
  await server.ready();
  await server.close();
  expect(names.map((name) => name.split(' -> ').at(-1))).toEqual(['routes', 'routes', 'note']);
});
