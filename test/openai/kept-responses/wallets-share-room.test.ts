import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../../support/wallets.ts';
import { completion, startTranscripts } from '../translated/support/transcript-upstream.ts';

const MODEL = 'acme/thinker';

test('wallets that never had money keep together no more than one other account', async () => {
  const upstream = await startTranscripts();
  onTestFinished(() => upstream.stop());
  upstream.answer = () => ({ body: completion({ content: 'Good morning' }) });
  const BYTES_MAX = 400_000;
  const small = await startSpine({
    toml:
      `${UNHURRIED}${SIGN_IN_TOML}[responses]\nbytes_max = ${BYTES_MAX}\naccount_bytes_max = ${BYTES_MAX}\n` +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }) +
      modelBlock({ name: 'acme/free', provider: 'Acme', url: upstream.url, prompt: 0, completion: 0 }),
  });
  try {
    const customer = new OpenAI({ baseURL: small.url, apiKey: small.key, maxRetries: 0 });
    const ids: string[] = [];
    for (let i = 0; i < 8; i += 1)
      ids.push((await customer.responses.create({ model: MODEL, input: 'x'.repeat(10_000) })).id);
    for (let wallet = 0; wallet < 40; wallet += 1) {
      const made = await fetch(`${small.url}/responses`, {
        method: 'POST',
        headers: { ...(await signInHeaders(solanaWallet())), 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'acme/free', input: 'x'.repeat(20_000) }),
      });
      expect(made.status, await made.text()).toBe(200);
    }
    for (const id of ids) expect((await customer.responses.retrieve(id)).id).toBe(id);
    const text = 'SELECT SUM(bytes) AS bytes FROM kept_responses';
    const [row] = await small.app.database.query({ name: 'test/sum', text });
    expect(Number(row!['bytes'])).toBeLessThanOrEqual(BYTES_MAX);
    expect(await small.faults()).toEqual([]);
  } finally {
    await small.stop();
  }
});
