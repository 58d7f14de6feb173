import { expect, test } from 'vitest';
import { agentBlock, startAgent } from '../support/a2a-agent/index.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

const agent = ofFile(
  () => startAgent({ version: 'both' }),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}${agentBlock({ name: 'fixture/agent', endpoint: agent.url })}`,
}));

const withPart = (...content: object[]) => ask('', { messages: [{ role: 'user', content }] });

async function refused(body: object, param: string, words: RegExp): Promise<void> {
  const before = spine.provider.log.length;
  const response = await spine.post('/chat/completions', body);
  const { error } = (await response.json()) as { error: { message: string; type: string; param: string } };
  expect(response.status, error.message).toBe(400);
  expect(error).toMatchObject({ type: 'invalid_request', param });
  expect(error.message).toMatch(words);
  expect(spine.provider.log.length).toBe(before);
}

test.each(['image', 'Image_URL', 'image_url ', 'media', 'input_image', 'IMAGE', ''])(
  'a part of type "%s" is refused',
  async (type) => {
    const part = { type, image_url: { url: 'https://pictures.example.com/a.png' }, source: { data: 'AAAA' } };
    await refused(
      withPart({ type: 'text', text: 'hi' }, part),
      'messages[0].content[1].type',
      /must be one of text, image_url, input_audio, .*, not "/,
    );
  },
);

test('an image that hides in a text or beside the content is charged as an image', async () => {
  const url = 'https://pictures.example.com/a.png';
  for (const message of [
    { content: [{ type: 'image_url', image_url: { url } }] },
    { content: [{ type: 'text', text: 'hi', image_url: { url } }] },
    { content: [{ type: 'text', text: 'hi', image: url }] },
    { content: 'hi', images: [url] },
  ]) {
    const before = (await spine.balance()).available;
    const response = await spine.post('/chat/completions', ask('', { messages: [{ role: 'user', ...message }] }));
    expect(response.status, await response.text()).toBe(200);
    await spine.quiet();
    // 0.001 USD is the price of an image.
    expect(before - (await spine.balance()).available).toBeGreaterThanOrEqual(1_000n);
  }
});

test('a video goes to no model that does not say that it takes videos', async () => {
  const response = await spine.post(
    '/chat/completions',
    withPart({ type: 'video_url', video_url: { url: 'https://v.example.com/a.mp4' } }),
  );
  expect(response.status).toBe(422);
  expect(await response.text()).toContain('takes no video input; it takes text, image');
});

const PRIVATE = [
  ...'https://127.0.0.1/a.png https://2130706433/a.png https://0x7f.1/a https://[::1]/a https://[::ffff:10.0.0.1]/a https://localhost/a'.split(
    ' ',
  ),
  ...'https://169.254.169.254/latest/meta-data https://10.1.2.3:8443/a https://metadata.google.internal/a https://printer/a HTTPS://LOCALHOST./a'.split(
    ' ',
  ),
];

test.each(PRIVATE)(
  'a picture at %s is refused: the provider would fetch it from within its own network',
  async (url) => {
    await refused(
      withPart({ type: 'image_url', image_url: { url } }),
      'messages[0].content[0].image_url.url',
      /must name a host of the public internet/,
    );
    await refused(
      withPart({ type: 'video_url', video_url: { url } }),
      'messages[0].content[0].video_url.url',
      /public internet/,
    );
    await refused(
      withPart({ type: 'file', file: { file_data: url } }),
      'messages[0].content[0].file.file_data',
      /public internet/,
    );
  },
);

test.each(PRIVATE)('a file of a message at %s is refused as well', async (url) => {
  const before = agent.asked.length;
  for (const [version, method, role, part, param] of [
    ['1.0', 'SendMessage', 'ROLE_USER', { url }, 'url'],
    ['0.3', 'message/send', 'user', { kind: 'file', file: { uri: url } }, 'file.uri'],
    ['0.3', 'message/send', 'user', { kind: 'file', file: { file_with_uri: url } }, 'file.fileWithUri'],
  ] as const) {
    const message = { messageId: crypto.randomUUID(), role, parts: [part] };
    const response = await fetch(`${spine.origin}/a2a/fixture/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', 'a2a-version': version },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } }),
    });
    const { error } = (await response.json()) as { error: { code: number; message: string } };
    expect(error).toMatchObject({
      code: -32_602,
      message: `message.parts[0].${param} must name a host of the public internet`,
    });
  }
  expect(agent.asked.length).toBe(before);
});

test('pictures of the public internet, and those that are in the request, go through', async () => {
  for (const url of [
    'https://pictures.example.com/a.png?sig=' + 'x'.repeat(5_000),
    'https://1.1.1.1/a.png',
    'data:image/png;base64,AAAA',
  ])
    expect(
      (await spine.post('/chat/completions', withPart({ type: 'image_url', image_url: { url } }))).status,
      url.slice(0, 40),
    ).toBe(200);
});
