import { expect, onTestFinished, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startTunnelSpine } from '../../../support/tunnel-spine.ts';
import { startWireUpstream } from '../../../openai/native/support/wire-upstream.ts';
import { completion } from '../../../openai/translated/support/transcript-upstream.ts';

// Two providers of one model, of which one claims nearly a token for each byte of its answers.

const TEXT = 'The toll of this road is two coins for a cart and one for a rider. '.repeat(30);

test('the provider is flagged, and the other is not', async () => {
  const world = await startTunnelSpine();
  const providers = await Promise.all(
    [
      ['Sly', 0.9],
      ['Honest', 0.25],
    ].map(async ([provider, density]) => {
      const upstream = await startWireUpstream();
      onTestFinished(() => upstream.stop());
      const tokens = Math.round(TEXT.length * (density as number));
      upstream.answer = () => ({
        text: JSON.stringify({
          ...completion({ content: TEXT }),
          usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: 5 + tokens },
        }),
      });
      await world.dialIn({
        services: offeredModel({ url: upstream.url, name: 'both/one', provider: provider as string }),
      });
      return provider as string;
    }),
  );
  for (let call = 0; call < 12; call++)
    for (const provider of providers) {
      const reply = await world.spine.post('/chat/completions', {
        model: 'both/one',
        max_tokens: 4_000,
        messages: [{ role: 'user', content: 'x' }],
        provider: { order: [provider] },
      });
      expect([reply.status, reply.headers.get('x-provider')]).toEqual([200, provider]);
      await reply.text();
    }
  const flags = Object.fromEntries(
    (await world.endpoints('both/one'))!.map(({ provider_name: name, flags: counts }) => [name, counts]),
  );
  expect(flags['Honest']).toEqual({});
  expect(Object.keys(flags['Sly']!)).toEqual(['usage_unusual']);
  expect(await world.spine.faults()).toEqual([]);
});
