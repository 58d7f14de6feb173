import { describe, expect, test } from 'vitest';
import { PAIRS, useClientWorld } from './client-world.ts';
import { connect, saying, textOf } from './sdk-client.ts';

const clients = useClientWorld();

describe.each(PAIRS)('$name', ({ kind, speaks }) => {
  test('finds the service by its card, which names only the gateway', async () => {
    const { client, served, agent } = await clients.meet(kind, speaks);
    const card = await client.getAgentCard();
    expect(card.name).toBe('Fixture');
    const interfaces = card.supportedInterfaces.filter(
      ({ protocolBinding }) => protocolBinding === 'JSONRPC' || protocolBinding === 'HTTP+JSON',
    );
    expect(interfaces.length).toBeGreaterThan(0);
    for (const { url } of interfaces) expect(url.startsWith(served.url)).toBe(true);
    expect(JSON.stringify(card)).not.toContain(new URL(agent.url).host);
  });

  test('is refused without a key that exists', async () => {
    const { served } = await clients.meet(kind, speaks);
    const nobody = connect(kind, served.url, 'no-such-key');
    await expect(nobody.then((client) => client.sendMessage(saying('echo x')))).rejects.toThrow(
      /401|nauthori[sz]ed|key/u,
    );
  });

  test('does not show its key to the agent', async () => {
    const { client, agent } = await clients.meet(kind, speaks);
    const marker = `marker-${crypto.randomUUID()}`;
    expect(textOf((await client.sendMessage(saying(`echo ${marker}`))) as never)).toBe(marker);
    const request = await agent.receives(({ body }) => body.includes(marker));
    expect(JSON.stringify(request)).not.toContain(clients.world.spine.key);
  });
});
