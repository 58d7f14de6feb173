import { expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { spineOfFile } from '../../support/of-file.ts';

// The tokens of an image in a count: those that the model states, or those of a usual image.

const block = (name: string, provider: string, line = '') => `
[[models]]
name = "${name}"
display_name = "${name}"
provider_name = "${provider}"
context_length = 100000
input_modalities = ["text", "image"]
[models.pricing]
prompt = 1
completion = 1
[models.params]
model = "${name}"
api_base = "http://127.0.0.1:9/v1"
api_key = "k"
${line}
`;

const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}
${block('acme/usual', 'Acme')}
${block('acme/tiles', 'Acme', 'image_tokens_max = 26000')}
${block('acme/few', 'Acme', 'image_tokens_max = 256')}
${block('acme/both', 'Acme', 'image_tokens_max = 256')}
${block('acme/both', 'Other', 'image_tokens_max = 3000')}
`,
}));

const PIXEL = 'iVBORw0KGgo=';

async function tokens(path: string, body: object): Promise<number> {
  const response = await spine.post(path, body);
  expect(response.status).toBe(200);
  return ((await response.json()) as { readonly input_tokens: number }).input_tokens;
}

test.each([
  ['acme/usual', 1_400],
  ['acme/tiles', 26_000],
  ['acme/few', 256],
  ['acme/both', 3_000],
  ['acme/tiles:floor', 26_000],
])('an image for %s counts %i tokens', async (model, each) => {
  const text = { type: 'text', text: 'Look' };
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } };
  const message = (content: readonly object[]) => ({ model, messages: [{ role: 'user', content }] });
  const plain = await tokens('/messages/count_tokens', message([text]));
  expect(await tokens('/messages/count_tokens', message([text, image, image]))).toBe(plain + 2 * each);
  const input = (content: readonly object[]) => ({ model, input: [{ role: 'user', content }] });
  const said = { type: 'input_text', text: 'Look' };
  const shown = { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` };
  const words = await tokens('/responses/input_tokens', input([said]));
  expect(await tokens('/responses/input_tokens', input([said, shown]))).toBe(words + each);
});
