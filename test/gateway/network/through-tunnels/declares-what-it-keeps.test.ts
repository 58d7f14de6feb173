import { expect, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine } from '../../../support/tunnel-spine.ts';

test('a provider that dials in declares what it keeps, and consumers choose by it', async () => {
  const { spine, dialIn, upstream, endpoints } = await startTunnelSpine();
  const { url } = await upstream();
  const lines = 'data_collection = "deny"\nzdr = true\nregion = "eu"\nquantization = "fp8"';
  await dialIn({ services: offeredModel({ url, provider: 'Silent', lines }) });
  await dialIn({ services: offeredModel({ url, provider: 'Keeping' }) });
  for (let round = 0; round < 10; round++) {
    const provider = { zdr: true, region: 'eu', quantizations: ['fp8'], data_collection: 'deny' };
    const response = await spine.post('/chat/completions', askTunnel('hello', { provider }));
    expect(response.status, await response.text()).toBe(200);
    expect(response.headers.get('x-provider')).toBe('Silent');
  }
  const listed = (await endpoints())!.toSorted((a, b) => (a.provider_name < b.provider_name ? -1 : 1));
  expect(listed).toMatchObject([
    { provider_name: 'Keeping', data_collection: 'allow', zdr: false, region: null, quantization: null },
    { provider_name: 'Silent', data_collection: 'deny', zdr: true, region: 'eu', quantization: 'fp8' },
  ]);
});
