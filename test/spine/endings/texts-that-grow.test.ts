import { expect, test } from 'vitest';
import { imageBlock } from '../../media/support/image-provider.ts';
import { modelBlock, startSpine } from '../../support/spine.ts';
import { ask, records } from './ends-of-calls.ts';
import type { Kind } from './kinds.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { startVendor } from './vendor.ts';

/* A tokenizer that normalises makes more tokens of these texts than they have bytes. */
const TEXTS: readonly (readonly [name: string, text: string, tokens: number])[] = [
  ['nfkc', '\ufdfa'.repeat(100), 3_300],
  ['nfc', '\u{1d160}'.repeat(100), 1_200],
];

const block = ({ name, lines = '', pricing = '', params = '', images, noTokens }: Kind, url: string) =>
  images
    ? imageBlock({ url, name, provider: 'Own', lines })
    : modelBlock({
        name,
        provider: 'Own',
        url,
        lines,
        pricing,
        params,
        ...(noTokens ? { prompt: 0, completion: 0 } : {}),
      });

const KINDS = ALL_KINDS.filter((kind) => !kind.noTokens && kind.worth({ prompt: 1, completion: 0 }) === 1);

test('texts that a tokenizer makes longer are locked and charged as the vendor counts them', async () => {
  const vendor = await startVendor();
  const spine = await startSpine({ toml: KINDS.map((kind) => block(kind, vendor.url)).join('') });
  const cases = KINDS.flatMap((kind) =>
    TEXTS.map(([form, text, tokens]) => ({ kind, text, tokens, id: `${kind.name}${form}` })),
  );
  try {
    await Promise.all(
      cases.map(({ kind, text, tokens, id }) =>
        ask({
          spine,
          vendor,
          kind,
          model: kind.name,
          script: 'complete',
          reported: true,
          id,
          more: ` !p:${tokens} !c:3 ${text}`,
        }),
      ),
    );
    expect(await spine.faults()).toEqual([]);
    const found = await records(spine);
    const charged = cases.map(({ id }) => [id, found.get(id)?.cost_micro_usdc, found.get(id)?.flags]);
    expect(charged).toEqual(
      cases.map(({ kind, tokens, id }) => [id, kind.worth({ prompt: tokens, completion: 3 }), []]),
    );
    expect(KINDS.length).toBeGreaterThan(10);
  } finally {
    await spine.stop();
  }
});
