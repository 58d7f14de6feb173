import { describe, expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { message, MESSAGE_USAGE, response, RESPONSE_USAGE } from './support/transcripts.ts';
import { startWireUpstream } from './support/wire-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// What a provider may claim of a prompt is what was locked for it.

const NATIVE = 'acme/native';
const upstream = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  const native = {
    provider: 'Acme',
    url: upstream.url,
    params: 'wires = ["messages", "responses"]\nforward = ["web_search", "shell"]',
  };
  const block = modelBlock({ name: NATIVE, ...native });
  return {
    toml: UNHURRIED + block.replace('[models.pricing]', 'input_modalities = ["text", "image"]\n[models.pricing]'),
  };
});

/** The prompt's tokens that a claim of so many is paid. */
async function paid(path: 'messages' | 'responses', body: object, claimed: number): Promise<number> {
  upstream.answer = () => ({
    text:
      path === 'messages'
        ? message({ usage: { ...MESSAGE_USAGE, input_tokens: claimed - 28 } })
        : response({ usage: { ...RESPONSE_USAGE, input_tokens: claimed, total_tokens: claimed + 9 } }),
  });
  const reply = await fetch(`${spine.url}/${path}`, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ model: NATIVE, ...body }),
  });
  const text = await reply.text();
  expect([reply.status, text]).toEqual([200, expect.any(String)]);
  const { tokens_prompt: tokens } = (await spine.generation(reply.headers.get('x-generation-id'))) as {
    tokens_prompt: number;
  };
  return tokens;
}

const LONG = 'text '.repeat(6_000);
const said = (...content: object[]) => ({ max_tokens: 50, messages: [{ role: 'user', content }] });
const given = (...input: object[]) => ({ max_output_tokens: 50, input });
const user = (...content: object[]) => ({ role: 'user', content });

describe('text that looks like a picture is counted as text', () => {
  const asPicture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: LONG } };
  const turns = (input: object) => ({
    max_tokens: 50,
    messages: [
      user({ type: 'text', text: 'Hi' }),
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'x', input }] },
      user({ type: 'tool_result', tool_use_id: 't', content: 'done' }),
    ],
  });
  test.each([
    ['in what a tool was called with', turns({ content: [asPicture] })],
    ['in a picture of text', said({ type: 'text', text: 'Hi' }, asPicture)],
  ])('%s', async (_name, body) => {
    expect(await paid('messages', body, 20_000)).toBe(20_000);
  });
});

test('a picture is no text, also in the result of a tool', async () => {
  const data = 'A'.repeat(40_000);
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
  for (const block of [picture, { type: 'tool_result', tool_use_id: 't', content: [picture] }])
    expect(await paid('messages', said(block), 90_000)).toBeLessThan(30_000);
  const part = { type: 'input_image', image_url: `data:image/png;base64,${data}` };
  for (const item of [user(part), { type: 'function_call_output', call_id: 'c', output: [part] }])
    expect(await paid('responses', given(item), 90_000)).toBeLessThan(30_000);
});

describe('the whole context is locked', () => {
  test.each([
    ['a document at an address', { type: 'document', source: { type: 'url', url: 'https://a.example/x.pdf' } }],
    ['a PDF', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }],
    [
      'a PDF in the result of a tool',
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }],
      },
    ],
  ])('for %s of a message', async (_name, block) => {
    expect(await paid('messages', said(block), 90_000)).toBe(90_000);
  });

  test('for a server tool with a schema', async () => {
    const tools = [{ type: 'web_search_20260209', name: 'web_search', input_schema: { type: 'object' } }];
    expect(await paid('messages', { ...said({ type: 'text', text: 'Hi' }), tools }, 90_000)).toBe(90_000);
  });

  test.each([
    ['a file at an address', user({ type: 'input_file', file_url: 'https://a.example/x.pdf' })],
    ['a PDF', user({ type: 'input_file', filename: 'x.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' })],
    ['hosted tools in an item', { type: 'additional_tools', tools: [{ type: 'web_search' }] }],
    [
      'a shell in a container',
      { type: 'additional_tools', tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
    ],
  ])('for %s of a response', async (_name, item) => {
    expect(await paid('responses', given(user({ type: 'input_text', text: 'Hi' }), item), 90_000)).toBe(90_000);
  });

  test('and not for a document of plain text', async () => {
    const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'short' } };
    expect(await paid('messages', said(document), 90_000)).toBeLessThan(5_000);
    const file = { type: 'input_file', filename: 'x.txt', file_data: 'data:text/plain;base64,SGk=' };
    expect(await paid('responses', given(user(file)), 90_000)).toBeLessThan(5_000);
  });
});
