import { describe, expect, test } from 'vitest';
import { ask, MODEL, modelBlock, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';
import { readOpenApi } from '../support/open-api.ts';

// Every parameter with its limits: just inside passes, just outside is refused with the parameter's name.

const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}${modelBlock({ name: 'test/text-only', provider: 'Text', url: '{provider}', maxOutputTokens: 100 })}`,
}));

const text = 'hello !tokens:1';
const image = (url: unknown) => [
  {
    role: 'user',
    content: [
      { type: 'text', text },
      { type: 'image_url', image_url: { url } },
    ],
  },
];

describe('inside', () => {
  test.each([
    [{ temperature: 0 }],
    [{ temperature: 2 }],
    [{ temperature: null }],
    [{ top_p: 0 }],
    [{ top_p: 1 }],
    [{ presence_penalty: -2 }],
    [{ presence_penalty: 2 }],
    [{ frequency_penalty: -2.0 }],
    [{ frequency_penalty: 2 }],
    [{ n: 1 }],
    [{ n: 4 }],
    [{ stop: 'one' }],
    [{ stop: ['1', '2', '3', '4'] }],
    [{ stop: [] }],
    [{ stop: null }],
    [{ max_tokens: 1 }],
    [{ max_tokens: 4096 }],
    [{ max_tokens: null, max_completion_tokens: 4096 }],
    [{ stream: false }],
    [{ stream: null }],
    [{ user: 'somebody' }],
    [{ metadata: {} }],
    [{ metadata: null }],
    [{ tools: [] }],
    [{ tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'none' }],
    [
      {
        tool_choice: { type: 'function', function: { name: 'f' } },
        tools: [{ type: 'function', function: { name: 'f' } }],
        max_tokens: 1,
      },
    ],
    [
      {
        messages: [
          { role: 'system', content: 'x' },
          { role: 'user', content: text },
        ],
      },
    ],
    [
      {
        messages: [
          { role: 'developer', content: 'x' },
          { role: 'user', content: text },
        ],
      },
    ],
    [{ messages: [{ role: 'user', content: text }, { role: 'assistant' }] }],
    [
      {
        messages: [
          { role: 'user', content: text },
          { role: 'assistant', content: null },
        ],
      },
    ],
    [{ messages: [{ role: 'user', content: '' }] }],
    [{ messages: image('https://example.com/a.png') }],
    [{ messages: image('HTTPS://EXAMPLE.COM/a.png') }],
    [{ messages: image('data:image/png;base64,iVBORw0KGgo=') }],
    [{ messages: image('data:image/svg+xml;base64,PHN2Zz4=') }],
  ])('%j', async (more) => {
    const response = await spine.post('/chat/completions', ask(text, more));
    expect(response.status, await response.text()).toBe(200);
  });
});

describe('outside', () => {
  test.each([
    [{ model: undefined }, 'model'],
    [{ model: '' }, 'model'],
    [{ model: 7 }, 'model'],
    [{ model: null }, 'model'],
    [{ model: [MODEL] }, 'model'],
    [{ model: 'a\r\nb' }, 'model'],
    [{ model: 'x'.repeat(257) }, 'model'],
    [{ messages: undefined }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: 'hello' }, 'messages'],
    [{ messages: {} }, 'messages'],
    [{ messages: null }, 'messages'],
    [{ messages: ['hello'] }, 'messages[0]'],
    [{ messages: [null] }, 'messages[0]'],
    [{ messages: [{ content: 'x' }] }, 'messages[0].role'],
    [
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'wizard', content: 'x' },
        ],
      },
      'messages[1].role',
    ],
    [{ messages: [{ role: 7, content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: null }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: {} }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: ['x'] }] }, 'messages[0].content[0]'],
    [{ messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages[0].content[0].type'],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
    [{ messages: [{ role: 'user', content: [{ type: 'text', text: 7 }] }] }, 'messages[0].content[0].text'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0].image_url'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'https://x' }] }] },
      'messages[0].content[0].image_url',
    ],
    [{ messages: image('http://example.com/a.png') }, 'messages[0].content[1].image_url.url'],
    [{ messages: image('file:///etc/passwd') }, 'messages[0].content[1].image_url.url'],
    [{ messages: image('data:text/html;base64,PGI+') }, 'messages[0].content[1].image_url.url'],
    [{ messages: image('data:image/png,plain') }, 'messages[0].content[1].image_url.url'],
    [{ messages: image('') }, 'messages[0].content[1].image_url.url'],
    [{ messages: image(7) }, 'messages[0].content[1].image_url.url'],
    [{ temperature: -0.0001 }, 'temperature'],
    [{ temperature: 2.0001 }, 'temperature'],
    [{ temperature: '1' }, 'temperature'],
    [{ temperature: [1] }, 'temperature'],
    [{ top_p: -0.01 }, 'top_p'],
    [{ top_p: 1.01 }, 'top_p'],
    [{ top_p: true }, 'top_p'],
    [{ presence_penalty: -2.01 }, 'presence_penalty'],
    [{ presence_penalty: 2.01 }, 'presence_penalty'],
    [{ frequency_penalty: -2.01 }, 'frequency_penalty'],
    [{ frequency_penalty: 2.01 }, 'frequency_penalty'],
    [{ n: 0 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ n: '2' }, 'n'],
    [{ n: 129 }, 'n'],
    [{ stop: ['1', '2', '3', '4', '5'] }, 'stop'],
    [{ stop: 7 }, 'stop'],
    [{ stop: [7] }, 'stop[0]'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_tokens: -1 }, 'max_tokens'],
    [{ max_tokens: 1.5 }, 'max_tokens'],
    [{ max_tokens: '10' }, 'max_tokens'],
    [{ max_tokens: 1e300 }, 'max_tokens'],
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ stream: 'true' }, 'stream'],
    [{ stream: 1 }, 'stream'],
    [{ stream_options: 'x' }, 'stream_options'],
    [{ stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage'],
    [{ tools: {} }, 'tools'],
    [{ tools: [7] }, 'tools[0]'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tool_choice: 'maybe' }, 'tool_choice'],
    [{ tool_choice: {} }, 'tool_choice'],
    [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name'],
    [{ tool_choice: 7 }, 'tool_choice'],
    [{ user: 7 }, 'user'],
    [{ metadata: [] }, 'metadata'],
    [{ models: 'x' }, 'models'],
    [{ models: [7] }, 'models[0]'],
    [{ models: Array.from({ length: 17 }, (_, index) => `m${index}`) }, 'models'],
  ])('%j', async (more, param) => {
    const seen = spine.provider.log.length;
    const response = await spine.post('/chat/completions', ask(text, more));
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as {
      error: { type: string; code: number; param: string; message: string };
    };
    expect(error).toMatchObject({ type: 'invalid_request', code: 400, param });
    expect(error.message).toContain(param);
    expect(error.message.length).toBeLessThan(400);
    expect(spine.provider.log).toHaveLength(seen);
  });
});

describe('well formed, but not for this model: 422', () => {
  test.each([[{ model: 'test/text-only', messages: image('https://example.com/a.png') }, 'messages']])(
    '%j',
    async (more, param) => {
      const response = await spine.post('/chat/completions', ask(text, more));
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ error: { type: 'unprocessable', code: 422, param } });
    },
  );
});

describe('unknown models: 404 that names them', () => {
  test.each([
    'test/nowhere',
    'nowhere',
    'TEST/MODEL',
    'test/model ',
    '__proto__',
    'constructor',
    '../test/model',
    ':floor',
    'test/model:floor:floor',
    'x'.repeat(256),
  ])('%s', async (model) => {
    const response = await spine.post('/chat/completions', ask(text, { model }));
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error).toMatchObject({ type: 'invalid_model', code: 404, param: 'model' });
    const [message] = error.message.split('. The nearest: ');
    expect(message).toBe(`Model not found: ${model.slice(0, 128)}`);
  });
});

test('a value from a stranger cannot dress up an error message', async () => {
  const evil = '\u202e<script>alert(1)</script>\u0007\u2028';
  const response = await spine.post('/chat/completions', ask(text, { model: `a${evil.replace('\u0007', '')}` }));
  expect(await response.text()).not.toMatch(/[\u202e\u2028]/);
  const other = await spine.post('/chat/completions', ask(text, { messages: [{ role: evil, content: 'x' }] }));
  const refusal = await other.text();
  for (const character of ['\u202e', '\u0007', '\u2028']) expect(refusal).not.toContain(character);
});

test('a number of an address that is beyond all exact ones is refused by its name', async () => {
  const { paths } = await readOpenApi<{
    readonly paths: Readonly<
      Record<
        string,
        { readonly get?: { readonly parameters?: readonly { name: string; in: string; schema: object }[] } }
      >
    >;
  }>(spine.origin);
  let asked = 0;
  for (const [path, { get }] of Object.entries(paths))
    for (const { name, in: place, schema } of get?.parameters ?? []) {
      const { type } = schema as { readonly type?: string };
      if (place !== 'query' || (type !== 'integer' && type !== 'number')) continue;
      for (const value of ['1e400', '-1e400', '9007199254740993', '99999999999999999999']) {
        const address = `${spine.origin}${path.replace(/\{\w+\}/g, 'none')}?${name}=${value}`;
        const key = path.startsWith('/admin') ? spine.adminKey : spine.key;
        const { status } = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
        expect([path, name, value, status]).toEqual([path, name, value, expect.toBeOneOf([400, 404])]);
        asked += 1;
      }
    }
  expect(asked).toBeGreaterThan(40);
});
