import { expect, test } from 'vitest';
import { EXIT } from '../../../../src/providers/proxy/redial.ts';
import { dialIn, offeredModel } from '../../../support/dial-in.ts';
import { ask, startSpine } from '../../../support/spine.ts';
import { solanaWallet } from '../../../support/wallets.ts';

test('a proxy whose provider name is the operator’s ends, and the one that serves goes on', async () => {
  const spine = await startSpine();
  const wallet = solanaWallet();
  const services = (provider: string) => offeredModel({ url: spine.provider.url, name: 'acme/m', provider });
  const serving = await dialIn({ router: spine.origin, wallet, services: services('Acme') });
  try {
    // 'Test' is in the gateway's own file.
    const mistaken = await dialIn({ router: spine.origin, wallet, services: services('Test'), ready: false });
    expect(await mistaken.closed).toBe(EXIT.refused);
    expect(await mistaken.logged('the router refused')).toMatchObject({
      key: 'provider_name',
      wrong: expect.stringContaining('"Test" is reserved'),
    });
    expect((await spine.post('/chat/completions', ask('hi', { model: `${serving.id}:acme/m` }))).status).toBe(200);
    expect(serving.lines.map(({ msg }) => msg)).not.toContain(
      'another proxy with the same credential took over; this proxy stops',
    );
  } finally {
    await serving.close();
    await spine.stop();
  }
});
