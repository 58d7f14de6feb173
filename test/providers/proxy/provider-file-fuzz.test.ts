import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigError } from '#config';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { damaged, soup, TOML_PIECES } from '../../server/config/damage.ts';
import { block } from '../../server/config/load.ts';

const ROUTERS = [
  '[router]\nurl = "https://r.example"\napi_key = "std::env::A"\n',
  '[router]\nurl = "http://127.0.0.1:1/"\n[router.siwx]\nchain_id = "solana:mainnet"\nkeypair_file = "k.json"\n',
];
const BLOCKS = [
  block('models', { context_length: '10', max_output_tokens: '5', input_modalities: '["text"]', 'pricing.image': '0' }),
  block('tools', { endpoint: null, command: '"x"', args: '["-y"]', 'env.A': '"std::env::A"', 'pricing.tools.a': '1' }),
  block('agents', { 'pricing.prompt': '1', 'pricing.per_call_max': '1' }) + block('tools'),
  block('images', { 'pricing.resolutions.1K': '1', formats: '["png"]' }),
  block('videos', { 'pricing.base': '1', 'pricing.audio_multiplier': '1.5' }),
];
const files = ROUTERS.flatMap((router) => BLOCKS.map((text) => router + text));

test('any text, and any damage to a right file, loads or is refused with what is wrong', () => {
  for (const text of files)
    expect(loadProviderFile({ file: null, text, env: { A: 'a' } }).services.length).toBeGreaterThan(0);
  let loaded = 0;
  let refused = 0;
  const loadsOrRefuses = (text: string) => {
    try {
      const { services, router } = loadProviderFile({ file: null, text, env: { A: 'a' } });
      expect(services.length).toBeGreaterThan(0);
      expect(router.wallet ?? router.apiKey).not.toBeNull();
      loaded++;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.problems.length).toBeGreaterThan(0);
      refused++;
    }
  };
  const texts = fc.oneof(
    { weight: 4, arbitrary: damaged(files, TOML_PIECES) },
    { weight: 1, arbitrary: soup(TOML_PIECES) },
  );
  fc.assert(fc.property(texts, loadsOrRefuses), { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 2_000 });
  // Not all damage hurts, and most does: the inputs are near the border.
  expect(loaded).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(100);
}, 3_600_000);
